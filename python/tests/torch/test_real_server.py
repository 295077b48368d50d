"""Against a server that nobody here has written: weights, shards, and positions."""

from __future__ import annotations

import io
import tarfile

import servers
import torch

import wirespeed
from wirespeed.torch import (
    S3IterableDataset,
    S3TarDataset,
    load,
    load_safetensors,
    save,
    save_safetensors,
)


def test_weights_shards_and_positions_go_through_versitygw(versitygw: servers.Server) -> None:
    versitygw.boto3().create_bucket(Bucket="torch")
    with wirespeed.Client(
        endpoint_url=versitygw.endpoint,
        region=servers.REGION,
        access_key_id=versitygw.access_key,
        secret_access_key=versitygw.secret_key,
    ) as client:
        saved = {"large": torch.randn(6 << 20), "small": torch.arange(9), "none": torch.ones(0)}
        save(saved, "s3://torch/c.pt", client=client)
        save_safetensors(saved, "s3://torch/m.safetensors", client=client)
        for loaded in (
            load("s3://torch/c.pt", client=client),
            load_safetensors("s3://torch/m.safetensors", client=client),
        ):
            assert all(torch.equal(loaded[name], one) for name, one in saved.items())

        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for index in range(30):
                info = tarfile.TarInfo(f"{index:03}.txt")
                info.size = 3
                tar.addfile(info, io.BytesIO(b"%03d" % index))
                client.put(f"s3://torch/objects/{index:03}", b"%03d" % index)
        client.put("s3://torch/shards/0.tar", out.getvalue())
        shards = S3TarDataset.from_prefix(
            "s3://torch/shards/",
            shuffle_buffer=7,
            transform=lambda sample: int(bytes(sample["txt"])),
            client=client,
        )
        objects = S3IterableDataset.from_prefix(
            "s3://torch/objects/",
            shuffle=True,
            transform=lambda sample: int(bytes(sample.data)),
            client=client,
        )
        for dataset in (shards, objects):
            samples = iter(dataset)
            seen = [next(samples) for _ in range(11)]
            state = dataset.state_dict()
            samples.close()
            dataset.load_state_dict(state)
            assert sorted(seen + list(dataset)) == list(range(30))
