"""S3 for PyTorch: datasets, safetensors and checkpoints, straight into tensors.

`S3MapDataset`, `S3IterableDataset`, `S3TarDataset` and `S3TarMapDataset` feed a `DataLoader`;
`ResumableDataLoader` is a `DataLoader` whose position can be saved and taken up again.
`load_safetensors`, `save_safetensors`, `load` and `save` move weights between S3 and tensors with
no temporary file.

Where a function takes ``client=None`` it uses the client of the module-level verbs, in each process
its own. Nothing here keeps a secret: a dataset that travels to a worker takes the client's settings
along, and the worker looks for the credentials itself.

torch is an optional extra. Tested with torch 1.13 and 2.6, on the CPU.
"""

try:
    import torch as _torch  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ImportError as error:
    raise ImportError(
        "wirespeed.torch needs PyTorch, which is not installed: pip install 'wirespeed[torch]',"
        " or the build of torch that suits this machine (https://pytorch.org/get-started/locally/)"
    ) from error

from wirespeed.torch.datasets import S3IterableDataset, S3MapDataset, S3Object
from wirespeed.torch.errors import CorruptDataError
from wirespeed.torch.fetching import Window
from wirespeed.torch.loader import ResumableDataLoader
from wirespeed.torch.loading import load
from wirespeed.torch.objects import ObjectList
from wirespeed.torch.safetensors import load_safetensors, save_safetensors
from wirespeed.torch.saving import save
from wirespeed.torch.staging import CudaCopier, DeviceCopier
from wirespeed.torch.tar_datasets import S3TarDataset, S3TarMapDataset, TarIndex, TarSample

__all__ = [
    "CorruptDataError",
    "CudaCopier",
    "DeviceCopier",
    "ObjectList",
    "ResumableDataLoader",
    "S3IterableDataset",
    "S3MapDataset",
    "S3Object",
    "S3TarDataset",
    "S3TarMapDataset",
    "TarIndex",
    "TarSample",
    "Window",
    "load",
    "load_safetensors",
    "save",
    "save_safetensors",
]
