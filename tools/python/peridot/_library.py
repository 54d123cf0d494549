"""The shared library, loaded through cffi with the declarations of its own header, and its failures as exceptions."""
from __future__ import annotations

import ctypes.util
import os
import re
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Optional

import cffi

_here = Path(__file__).resolve().parent


def declarations(header: str) -> str:
    """What cffi can read of peridot.h: without comments, the preprocessor's lines, and what is for C++ alone."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    text = re.sub(r"^#ifdef __cplusplus$.*?^#endif$", "", text, flags=re.S | re.M)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    return re.sub(r"\bPERIDOT_API\b", "", text)


def _candidates() -> list[str]:
    """PERIDOT_LIBRARY alone where it is set; else beside this file, the system's, and a build folder of the sources."""
    named = os.environ.get("PERIDOT_LIBRARY")
    if named:
        return [named]
    names = "libperidot.dll" if sys.platform == "win32" else "libperidot.so*"
    beside = [str(path) for folder in (_here, _here / "lib", _here / "bin") for path in sorted(folder.glob(names))]
    system = ctypes.util.find_library("peridot")
    built = [str(path) for path in _here.parents[2].glob("build/libperidot.so")] if len(_here.parents) > 2 else []
    return beside + ([system] if system else []) + built


def _load() -> Any:
    failures = []
    for path in _candidates():
        try:
            return ffi.dlopen(path)
        except OSError as error:
            failures.append(str(error))
    raise ImportError("libperidot.so cannot be loaded (install it, or set PERIDOT_LIBRARY to its path): "
                      + ("; ".join(failures) or "it is not beside the package, in the system, or in a build folder"))


def _check_version(header: str) -> None:
    """Until 1.0 a new minor version may change the interface."""
    own = re.findall(r"#define PERIDOT_VERSION_M[AI][JN]OR (\d+)", header)
    other = text(lib.peridot_version())
    if other.split(".")[:2] != own:
        raise ImportError(f"libperidot is version {other}, and this package is for {'.'.join(own)}")


class Error(Exception):
    """A call of the library failed; the text is the library's sentence."""


class ArgumentError(Error, ValueError): """An argument is out of range."""
class FileError(Error, OSError): """A file cannot be read or written."""
class FormatError(Error, ValueError): """A file contradicts its format, or itself."""
class UnsupportedError(Error): """An architecture, dtype, key or tokenizer that Peridot does not know."""
class DeviceError(Error): """No Vulkan loader, no such device, or the driver failed."""
class DeviceLostError(DeviceError): """The device went away, and the model with it: open it again."""
class OutOfMemoryError(Error, MemoryError): """Host or device memory is too small; the sentence has the numbers."""
class Cancelled(Error): """A callback, or Session.cancel, asked to stop."""


_errors = [Error, ArgumentError, FileError, FormatError, UnsupportedError, DeviceError, DeviceLostError,
           OutOfMemoryError, Cancelled]   # by peridot_status
_raised = threading.local()


def on_error(kind: type[BaseException], error: BaseException, trace: TracebackType) -> None:
    """Of callbacks: what one raises, such as KeyboardInterrupt, ends the call of the library and comes out of check."""
    _raised.error = error


def check(status: int) -> None:
    """Raises what a callback of the call raised, or what the status says."""
    error: Optional[BaseException] = _raised.__dict__.pop("error", None)
    if error is not None:
        raise error
    if status != 0:
        raise (_errors[status] if status < len(_errors) else Error)(text(lib.peridot_last_error()))


def text(value: Any) -> str:
    """A C string, or the characters in a member of a struct."""
    return ffi.string(value).decode("utf-8", "replace") if value else ""


def string(value: str) -> Any:
    """For the library, which borrows it."""
    if "\0" in value:
        raise ValueError("a text has a zero byte in it")
    return ffi.new("char[]", value.encode())


ffi: Any = cffi.FFI()
_header = (_here / "peridot.h").read_text("utf-8")
ffi.cdef(declarations(_header))
lib = _load()
_check_version(_header)
