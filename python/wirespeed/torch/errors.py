"""What is raised when an object's bytes are not what its format demands."""


class CorruptDataError(ValueError):
    """An object is not what it should be: a broken tar, safetensors file, checkpoint or manifest.

    ``uri`` names the object, ``offset`` the byte where it goes wrong, where that is known.
    """

    def __init__(self, uri: str, problem: str, offset: int | None = None) -> None:
        place = uri if offset is None else f"{uri}, byte {offset:,}"
        super().__init__(f"{place}: {problem}")
        self.uri = uri
        self.problem = problem
        self.offset = offset

    def __reduce__(self) -> tuple[type["CorruptDataError"], tuple[str, str, int | None]]:
        return CorruptDataError, (self.uri, self.problem, self.offset)
