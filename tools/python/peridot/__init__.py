"""Peridot: Gemma and Llama language models on any GPU, through Vulkan compute shaders.

    import peridot
    with peridot.Model("gemma-3-1b-it.gguf") as model:
        for piece in model.chat().send("Why is the sky blue?"):
            print(piece, end="", flush=True)

A Model is a loaded file, a Session the memory that Sequences of one model share, a Sequence one timeline of tokens.
Each closes by its method close, at the end of a with block, or when nothing refers to it any more; what was made from
it closes with it. Calls on one model and its sessions must come from one thread at a time. Failures are exceptions
(Error and below) with the library's sentence. Ctrl-C ends a call of the library as it does one of Python: by
KeyboardInterrupt; what was evaluated until then stays in the sequence.
"""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
import types
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence as Items
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple, Optional, TypeVar, Union

import numpy as np
import numpy.typing as npt

from ._library import (ArgumentError, Cancelled, DeviceError, DeviceLostError, Error, FileError, FormatError,
                       OutOfMemoryError, UnsupportedError, check, ffi, lib, on_error, string, text)

__all__ = ["ArgumentError", "Bench", "Call", "Cancelled", "Chat", "DeviceError", "DeviceLostError", "Error",
           "FileError", "FormatError", "GREEDY", "Generation", "Image", "Model", "OutOfMemoryError", "Record",
           "Sampling", "Sequence", "Session", "UnsupportedError", "devices", "find", "version"]

Floats = npt.NDArray[np.float32]
Ids = Union[Items[int], npt.NDArray[np.integer[Any]]]
Progress = Callable[[int, int], object]
Draft = Union["Model", Literal["ngram"], None]
Path = Union[str, os.PathLike[str]]
Adapters = Union[Mapping[Path, float], Items[Path]]
Taken = Optional[Mapping[str, float]]
_DRAFT_AUTO = 0xffffffff   # PERIDOT_DRAFT_AUTO
_THINK_ON = 0xffffffff     # PERIDOT_THINK_ON
_T = TypeVar("_T")


# ---- callbacks ----

def _nothing(*_: object) -> None:
    """The progress of every long call comes through Python, so that Ctrl-C is seen."""


@dataclasses.dataclass
class _Calls:
    """What `user` is a handle of."""
    progress: Progress = _nothing
    row: Callable[[Any, int, Floats], object] = _nothing
    text: Callable[[int, str], object] = _nothing
    thought: Callable[[int, str], object] = _nothing
    call: Callable[[Any], object] = _nothing
    log: Callable[[str], object] = _nothing


def _callback(kind: str, result: Optional[bool], call: Callable[..., object]) -> Any:
    """What `call` raises ends the library's call."""
    def back(user: Any, *args: Any) -> Optional[bool]:
        call(ffi.from_handle(user), *args)
        return result
    return ffi.callback(kind, back, error=None if result is None else False, onerror=on_error)


_on_progress = _callback("peridot_progress", True, lambda calls, done, total: calls.progress(done, total))
_on_row = _callback("peridot_row", True, lambda calls, sequence, pos, row, n: calls.row(sequence, pos, _floats(row, n)))
_on_text = _callback("peridot_text", True, lambda calls, token, piece, size: calls.text(token, _decoded(piece, size)))
_on_thought = _callback(
    "peridot_text", True, lambda calls, token, piece, size: calls.thought(token, _decoded(piece, size)))
_on_call = _callback("peridot_call", True, lambda calls, piece: calls.call(piece))
_on_log = _callback("peridot_log", None, lambda calls, level, message: calls.log(text(message)))


# ---- values ----

def _floats(row: Any, n: int) -> Floats:
    return np.frombuffer(ffi.buffer(row, 4 * n), np.float32)


def _decoded(data: Any, size: int) -> str:
    return bytes(ffi.buffer(data, size)).decode("utf-8", "replace") if size else ""


def _ids(ids: Ids) -> npt.NDArray[np.int32]:
    return np.fromiter((int(i) for i in ids), np.int32)


def _pointer(ids: npt.NDArray[np.int32]) -> Any:
    return ffi.cast("int32_t *", ids.ctypes.data)


def _take_ids(call: Callable[..., int], *args: Any) -> list[int]:
    """Of peridot_encode and its kin."""
    out, n = ffi.new("int32_t **"), ffi.new("size_t *")
    check(call(out, n, *args))
    ids = list(ffi.unpack(out[0], n[0])) if n[0] else []
    lib.peridot_free(out[0])
    return ids


class Record(types.SimpleNamespace):
    """The members of a struct that peridot.h describes: numbers, texts, and names of enums without their prefix."""

    def __init__(self, struct: Any) -> None:
        kind = ffi.typeof(struct)
        for name, field in (kind.item if kind.kind == "pointer" else kind).fields:
            value = getattr(struct, name)
            if field.type.kind == "enum":
                value = field.type.elements[value].split("_", 2)[2].lower()
            elif isinstance(value, ffi.CData):
                value = Record(value) if name == "device" else text(value)
            setattr(self, name, value)


# Medians: tokens per second of a prompt and of generation, and bytes per second that generation reads.
Bench = NamedTuple("Bench", [("prompt", float), ("generation", float), ("bandwidth", float)])


# The least and the most that the options of these names take.
_LIMITS = {"temperature": (0, 100), "top_k": (0, 2**32 - 1), "top_p": (0, 1), "min_p": (0, 1),
           "repeat_penalty": (0, 100), "presence_penalty": (-100, 100), "frequency_penalty": (-100, 100),
           "seed": (0, 2**64 - 1), "xtc_probability": (0, 1), "xtc_threshold": (0, 1), "top_n_sigma": (0, 100),
           "dry_multiplier": (0, 100), "dry_base": (0, 100), "dry_allowed_length": (0, 10**9),
           "dry_last_n": (0, 2**32 - 1)}


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How tokens are chosen, as the options of `peridot run` of these names say. None is the same default: what the
    model's publisher recommends, or else a temperature of 0.8, top_k 40, top_p 0.95, min_p 0.05, no penalty, no XTC.
    ValueError: a number is outside of what its option takes."""
    temperature: Optional[float] = None
    top_k: Optional[int] = None
    top_p: Optional[float] = None
    min_p: Optional[float] = None
    repeat_penalty: Optional[float] = None
    presence_penalty: float = 0
    frequency_penalty: float = 0
    seed: Optional[int] = None                                                 # None: any
    bias: Mapping[int, float] = dataclasses.field(default_factory=dict)        # added to logits of token ids
    stop: Items[str] = ()                                                      # the reply ends before these texts
    json_schema: Union[str, Mapping[str, Any], None] = None                    # the reply is JSON that it allows
    xtc_probability: Optional[float] = None
    xtc_threshold: Optional[float] = None
    top_n_sigma: float = 0
    dry_multiplier: float = 0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_last_n: int = 0                                                        # 0: all tokens
    dry_breakers: Items[str] = ("\n", ":", "\"", "*")

    def __post_init__(self) -> None:
        for name, (least, most) in _LIMITS.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:   # nor is NaN
                raise ValueError(f"{name} must be from {least} to {most}, not {value}")


# What the publisher of a model may recommend, in the order of the bits of peridot_recommended: the defaults without.
_RECOMMENDED = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repeat_penalty": 1.0,
                "xtc_probability": 0.0, "xtc_threshold": 0.1}
CACHES = "f16", "f32", "q8_0", "q8_0/q4_1", "q5_1", "q4_1"   # peridot_kv_type, by their numbers
GREEDY = Sampling(temperature=0, repeat_penalty=1)


@dataclasses.dataclass
class Call:
    """A call of a function in a reply. Arguments are JSON text of an object, which follows the function's schema where
    the call is complete: the length of a reply may cut its last one short."""
    id: str
    name: str
    text: str = ""
    complete: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """The object."""
        return dict(json.loads(self.text))


def version() -> str:
    """Of the library."""
    return text(lib.peridot_version())


def devices() -> list[Record]:
    """Every Vulkan device, usable or not: peridot_device_info."""
    out, n = ffi.new("peridot_device_info const ***"), ffi.new("size_t *")
    check(lib.peridot_devices(out, n))
    found = [Record(out[0][i]) for i in range(n[0])]
    lib.peridot_free(out[0])
    return found


# ---- handles ----

class _Handle:
    """Something of the library's that must be freed, and before that what was made from it."""

    def __init__(self, pointer: Any, free: Callable[[Any], object], parent: Optional[_Handle], *keep: Any) -> None:
        self._children: weakref.WeakSet[_Handle] = weakref.WeakSet()
        self._parent = parent   # which lives as long
        self._pointer = pointer
        self._free = weakref.finalize(self, lambda pointer, *_: free(pointer), pointer, *keep)
        if parent is not None:
            parent._children.add(self)

    def close(self) -> None:
        """Frees it, and what was made from it. Closing again is no error."""
        for child in list(self._children):
            child.close()
        self._free()

    @property
    def _p(self) -> Any:
        if not self._free.alive:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._pointer

    def __enter__(self: _T) -> _T:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _turn(message: str, n_images: int) -> dict[str, Any]:
    """A message of the user with images before its text."""
    parts = [*({"type": "image"} for _ in range(n_images)), {"type": "text", "text": message}]
    return {"role": "user", "content": parts if n_images else message}


def _encoded(source: Any) -> tuple[bytes, bytes]:
    """The bytes of a picture's file, and a name for sentences."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source), b"the picture"
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            return file.read(), os.fsencode(source)
    if not hasattr(source, "getbands"):   # of Pillow's images
        raise TypeError(f"an image is a path, bytes, an array or Pillow's, not {type(source).__name__}")
    transparent, out, exif = "A" in source.getbands() or "transparency" in source.info, io.BytesIO(), source.getexif()
    source.convert("RGBA" if transparent else "RGB").save(out, "PNG", compress_level=1,
                                                          **({"exif": exif.tobytes()} if exif else {}))
    return out.getvalue(), b"the picture"


class Image(_Handle):
    """A picture for one model, made by Model.image. `ids` stand for its rows in prompts, those of its crops after them.
    It must stay open until those were evaluated; generations and chats keep theirs."""

    def __init__(self, model: Model, source: Any, pan_and_scan: bool = False) -> None:
        out, n = ffi.new("peridot_image **"), ffi.new("size_t *")
        params = ffi.new("peridot_image_params *", {"size": ffi.sizeof("peridot_image_params"),
                                                    "pan_and_scan": pan_and_scan})
        if isinstance(source, np.ndarray):
            if source.dtype != np.uint8 or source.ndim != 3 or source.shape[2] != 3:
                raise ValueError(f"pixels are [height, width, 3] of uint8, not {list(source.shape)} of {source.dtype}")
            pixels = np.ascontiguousarray(source)
            status = lib.peridot_image_pixels(out, model._p, ffi.from_buffer("uint8_t[]", pixels), pixels.shape[1],
                                              pixels.shape[0], params)
        else:
            data, name = _encoded(source)
            status = lib.peridot_image_read(out, model._p, ffi.from_buffer(data), len(data), name, params)
        super().__init__(out[0], lib.peridot_image_free, model)   # it takes NULL
        check(status)
        self.ids = list(ffi.unpack(lib.peridot_image_ids(out[0], n), n[0]))


def _cache_dir() -> str:
    """The command's: what one finds out about a device the other knows."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(cache if cache.startswith("/") else os.path.expanduser("~/.cache"), "peridot")


def find(name: str) -> dict[str, Any]:
    """The model on this machine that the command's -m means by a name (`peridot models` lists them): its "path", and
    its "vision", the path of its vision tower where that is a file of its own. The command is that of the package, or
    the one that the variable PERIDOT_COMMAND names, or the system's. FileError: there is none of the name."""
    own = os.path.join(os.path.dirname(__file__), "bin", "peridot.exe" if sys.platform == "win32" else "peridot")
    command = os.environ.get("PERIDOT_COMMAND") or (own if os.path.exists(own) else shutil.which("peridot"))
    if not command:
        raise FileError(f"{name}: there is no such file, and no command peridot that knows models by their names")
    done = subprocess.run([command, "inspect", name, "--json"], capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise FileError(done.stderr.strip().rpartition("\n")[2].removeprefix("peridot: "))
    found = json.loads(done.stdout)
    return {"path": found["path"], "vision": found["vision"] if isinstance(found["vision"], str) else None}


class Model(_Handle):
    """A .gguf file or a Hugging Face directory, or the name of a model on this machine, loaded onto a device.

    device: an index, part of a name, a UUID or a PCI address; None: the variable PERIDOT_DEVICE, or the fastest GPU.
    gpu_memory: bytes of the GPU's own memory that weights may take; 0: all must fit. kernels: "matmul=tile", ...
    precision: "default", as suits the device, whose kernels may round activations; "exact", all in fp32.
    progress(done, total): bytes loaded. log(message): what the model does by itself. target: for a drafter, which works
    for that model alone (Session's draft). vision: the file with the model's vision tower (mmproj, GGUF), which a
    Hugging Face directory has among its own. image_rows: of a picture at most, where the model leaves it open (Gemma
    4's 70, 140, 280, 560 or 1120); 0: as its files say. info.image_rows is 0 where the model sees no images.
    adapters: LoRA adapters, GGUF files or PEFT directories, with the scales by which sequences take them that say
    nothing else (1 of a list)."""

    def __init__(self, path: Union[str, os.PathLike[str]], *, device: Union[str, int, None] = None, gpu_memory: int = 0,
                 kernels: Items[str] = (), cache_dir: Optional[str] = None, progress: Optional[Progress] = None,
                 log: Callable[[str], object] = _nothing, target: Optional[Model] = None,
                 precision: str = "default", vision: Union[str, os.PathLike[str], None] = None,
                 image_rows: int = 0, adapters: Adapters = ()) -> None:
        if not os.path.exists(path):
            found = find(os.fspath(path))
            path, vision = found["path"], vision or found["vision"]
        user = ffi.new_handle(_Calls(progress=progress or _nothing, log=log))
        chosen = os.environ.get("PERIDOT_DEVICE", "") if device is None else str(device)
        keep = [string(chosen), string(cache_dir or _cache_dir()), *map(string, kernels)]
        names = ffi.new("char *[]", keep[2:])
        tower = ffi.NULL if vision is None else ffi.new("char[]", os.fsencode(vision))
        scales = adapters if isinstance(adapters, Mapping) else {each: 1.0 for each in adapters}
        paths = [ffi.new("char[]", os.fsencode(each)) for each in scales]
        files = ffi.new("peridot_adapter_file[]", [{"path": each, "scale": scale}
                                                   for each, scale in zip(paths, scales.values())])
        params = ffi.new("peridot_model_params *", {
            "size": ffi.sizeof("peridot_model_params"), "device": keep[0] if chosen else ffi.NULL, "cache_dir": keep[1],
            "kernels": names, "n_kernels": len(names), "gpu_memory": gpu_memory, "progress": _on_progress,
            "log": _on_log, "user": user, "target": target._p if target is not None else ffi.NULL,
            "precision": ["default", "exact"].index(precision), "vision": tower, "image_rows": image_rows,
            "adapters": files, "n_adapters": len(files)})
        out = ffi.new("peridot_model **")
        status = lib.peridot_model_open(out, os.fsencode(path), params)
        super().__init__(out[0], lib.peridot_model_close, None, user)   # also when `log` raised; it takes NULL
        check(status)
        self.info = Record(lib.peridot_model_get_info(out[0]))   # peridot_model_info
        self._vocab_pointer = lib.peridot_model_vocab(out[0])
        self._thread = ThreadPoolExecutor(1)   # of what is awaited; it begins with the first of that
        self._chats: Optional[Chat] = None     # of create_chat_completion

    @property
    def _vocab(self) -> Any:
        if not lib.peridot_model_vocab(self._p):
            raise UnsupportedError(text(lib.peridot_last_error()))
        return self._vocab_pointer

    @property
    def adapters(self) -> dict[str, float]:
        """The names of the adapters that it was opened with, and their scales."""
        scale = ffi.new("float *")
        names: dict[str, float] = {}
        while name := lib.peridot_model_adapter(self._p, len(names), scale):
            names[text(name)] = float(scale[0])
        return names

    @property
    def has_chat(self) -> bool:
        """Whether the model has a chat template."""
        return bool(lib.peridot_vocab_has_chat(self._vocab))

    @property
    def labels(self) -> list[str]:
        """Names of a classifier's labels; "" where the model has none."""
        n = 0 if self.info.head == "language" else self.info.n_outputs
        return [text(lib.peridot_model_label(self._p, i)) for i in range(n)]

    @property
    def tasks(self) -> dict[str, str]:
        """What an embedding model was trained for: by name what texts of a task begin with."""
        tasks: dict[str, str] = {}
        prefix = ffi.new("char **")
        while name := lib.peridot_model_task(self._p, len(tasks), prefix):
            tasks[text(name)] = text(prefix[0])
        return tasks

    def encode(self, plain: str, *, bos: bool = False, eos: bool = False, special: bool = False) -> list[int]:
        """The text's token ids; `bos`: after the token that begins texts, where the model has one; `eos`: before the
        one that ends texts, where its tokenizer puts it there; `special`: control tokens written in the text are those
        tokens."""
        data = plain.encode()
        return _take_ids(lib.peridot_encode, self._vocab, data, len(data), bos * lib.PERIDOT_ENCODE_BOS
                         | eos * lib.PERIDOT_ENCODE_EOS | special * lib.PERIDOT_ENCODE_SPECIAL)

    def decode(self, ids: Ids) -> str:
        """The text of token ids."""
        array, out, size = _ids(ids), ffi.new("char **"), ffi.new("size_t *")
        check(lib.peridot_decode(out, size, self._vocab, _pointer(array), len(array)))
        decoded = _decoded(out[0], size[0])
        lib.peridot_free(out[0])
        return decoded

    def encode_messages(self, messages: Iterable[Mapping[str, str]], template: Optional[str] = None,
                        *, after: Ids = (), think: bool = False) -> list[int]:
        """The ids of a conversation ({"role": "user", "content": ...}, ...) with the model's next turn opened; or, with
        the ids of the conversation so far in `after`, those that the messages add to it. `template`: another one than
        the model's. think: the model is told to think before it answers."""
        array = _ids(after)
        keep = [(string(message["role"]), string(message["content"])) for message in messages]
        rows, name = ffi.new("peridot_message[]", keep), string(template) if template else ffi.NULL
        chat = ffi.new("peridot_chat *", {"size": ffi.sizeof("peridot_chat"), "template_name": name, "messages": rows,
                                          "n_messages": len(keep), "ids": _pointer(array), "n_ids": len(array),
                                          "think": _THINK_ON if think else 0})
        return _take_ids(lib.peridot_encode_turns, self._vocab, chat)

    def encode_conversation(self, messages: Items[Mapping[str, Any]], template: Optional[str] = None, *,
                            tools: Items[Mapping[str, Any]] = (), think: bool = False, images: Items[Image] = (),
                            after: Ids = ()) -> list[int]:
        """The ids of a conversation in the form of OpenAI's chat completions, with tool_calls and messages of the role
        "tool", and the model's next turn opened. tools: the functions that it is told of. images: what parts of
        contents of the type "image" are, in their order; keep them until the ids are evaluated. after: as of
        encode_messages."""
        data, listed, array = json.dumps(list(messages)).encode(), json.dumps(list(tools)).encode(), _ids(after)
        keep = [ffi.from_buffer(data), ffi.from_buffer(listed), string(template) if template else ffi.NULL,
                ffi.new("peridot_image *[]", [image._p for image in images])]
        chat = ffi.new("peridot_chat *", {"size": ffi.sizeof("peridot_chat"), "template_name": keep[2], "json": keep[0],
                                          "json_size": len(data), "tools": keep[1] if tools else ffi.NULL,
                                          "tools_size": len(listed) if tools else 0, "ids": _pointer(array),
                                          "n_ids": len(array), "images": keep[3], "n_images": len(images),
                                          "think": _THINK_ON if think else 0})
        return _take_ids(lib.peridot_encode_turns, self._vocab, chat)

    def image(self, source: Any, *, pan_and_scan: bool = False) -> Image:
        """A picture for this model. source: the path of a file or the bytes of one (JPEG, PNG, WebP, GIF), an array
        [height, width, 3] of uint8, or an image of Pillow's. pan_and_scan: with Gemma 3, a long one is shown whole and
        then in two to four parts (info.image_crops at most; others, whose is 0, refuse it)."""
        return Image(self, source, pan_and_scan)

    def _images(self, sources: Items[Any]) -> list[Image]:
        return [source if isinstance(source, Image) else Image(self, source) for source in sources]

    def _tools(self, tools: Items[Mapping[str, Any]], template: Optional[str]) -> Any:
        data = json.dumps(list(tools)).encode()
        keep = [ffi.from_buffer(data), string(template) if template else ffi.NULL]
        params = ffi.new("peridot_tools_params *", {"size": ffi.sizeof("peridot_tools_params"), "json": keep[0],
                                                    "json_size": len(data), "template_name": keep[1]})
        out = ffi.new("peridot_tools **")
        check(lib.peridot_tools_create(out, self._vocab, params))
        return ffi.gc(out[0], lib.peridot_tools_free)

    def _without_thoughts(self, ids: list[int]) -> list[int]:
        array = _ids(ids)
        return list(map(int, array[:lib.peridot_drop_thoughts(self._vocab, _pointer(array), len(array))]))

    def encode_infill(self, prefix: str, suffix: str) -> list[int]:
        """The ids of a prompt for what stands between two texts, of models with tokens for it (fill-in-the-middle)."""
        before, after = prefix.encode(), suffix.encode()
        texts = [ffi.from_buffer(before), ffi.from_buffer(after)]
        infill = ffi.new("peridot_infill *", {"size": ffi.sizeof("peridot_infill"), "prefix": texts[0],
                                              "suffix": texts[1], "prefix_size": len(before),
                                              "suffix_size": len(after)})
        return _take_ids(lib.peridot_encode_infill, self._vocab, infill)

    def is_stop(self, token: int) -> bool:
        """True for tokens that end a text or a turn."""
        return bool(lib.peridot_is_stop(self._p, token))

    def chat(self, *, draft: Draft = None, **params: Any) -> Chat:
        """A conversation in a session of its own: Chat(session, ...). draft: as of Session."""
        return Chat(Session(self, draft=draft), **params)

    def create_chat_completion(self, messages: Items[Mapping[str, Any]], *, tools: Items[Mapping[str, Any]] = (),
                               max_tokens: int = 0, stream: bool = False, **sampling: Any) -> Any:
        """A chat completion in OpenAI's form: a dictionary, or with `stream` an iterator over those of its parts.
        max_tokens 0: as many as there is room for. sampling: Sampling's, by name. What one conversation has in common
        with the last is not evaluated again."""
        if self._chats is None:
            self._chats = Chat(Session(self))
        reply = self._chats._reply_to(messages, tools, max_tokens, Sampling(**sampling))
        head = {"id": f"chatcmpl-{random.getrandbits(64):016x}", "created": int(time.time()), "model": self.info.name}
        if stream:
            return _completion_parts(head, reply, max_tokens)
        message = {"role": "assistant", "content": reply.read() or None, **_calls_of(reply)}
        choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply, max_tokens)}
        return {**head, "object": "chat.completion", "choices": [choice], "usage": _usage(reply)}

    def generate(self, prompt: str, n: int = 256, sampling: Sampling = Sampling(), *,
                 draft: Draft = None, images: Items[Any] = (), adapters: Taken = None) -> Generation:
        """What the model adds to a plain text, in a session of its own: Sequence.generate. draft: as of Session.
        adapters: as of Session.sequence. images: pictures before the text, each as Model.image takes it, or what that
        gave. A model that is tuned to chat expects them in a turn: Chat.send."""
        seen, sequence = self._images(images), Session(self, draft=draft).sequence(adapters=adapters)
        ids = (self.encode_conversation([_turn(prompt, len(seen))], "plain", images=seen) if seen
               else self.encode(prompt, bos=True))
        return sequence.generate(ids, n, sampling, images=seen)

    def embed(self, texts: Items[str], *, task: Optional[str] = None, pool: str = "model", dimensions: int = 0,
              normalise: bool = True) -> Floats:
        """A vector for each text, [info.embedding_size], or the first `dimensions` numbers of it, made of the states
        after the final norm, bos included: their "mean", the state of the "last" token or of the first ("cls"), or what
        the "model" was made for, through the dense layers that it has; of length 1 with `normalise`. task: a name of
        `tasks`, whose prefix texts are put behind."""
        if pool not in ("model", "mean", "last", "cls"):
            raise ValueError(f"pool is model, mean, last or cls, not {pool}")
        if pool == "model":
            pool = self.info.pool
        if task is not None and task not in self.tasks:
            raise ValueError(f"task is one of {list(self.tasks)}, not {task}")
        prefix = "" if task is None else self.tasks[task]
        prompts = [_ids(self.encode(prefix + each, bos=True, eos=True)) for each in texts]
        sums = np.zeros((len(prompts), self.info.d_model))

        def add(i: int, pos: int, row: Floats) -> None:
            if pool == "mean" or pos == (0 if pool == "cls" else len(prompts[i]) - 1):
                sums[i] += row

        width = 32   # texts together, as many as fit a chunk
        with Session(self, n_sequences=width, n_positions=min(self.info.ctx_max, 8192)) as session:
            begin = 0
            while begin < len(prompts):
                ends = np.cumsum([len(prompt) for prompt in prompts[begin:begin + width]])
                some = prompts[begin:begin + max(int((ends <= session.chunk).sum()), 1)]
                with contextlib.ExitStack() as stack:
                    sequences = [stack.enter_context(session.sequence()) for _ in some]
                    session._eval(list(zip(sequences, some)), hidden=lambda i, pos, row: add(begin + i, pos, row))
                begin += len(some)
        if pool == "mean":
            sums /= np.array([[len(prompt)] for prompt in prompts])
        vectors = np.zeros((len(prompts), dimensions or self.info.embedding_size), np.float32)
        for vector, pooled in zip(vectors, sums):
            check(lib.peridot_embedding(ffi.from_buffer("float[]", vector), self._p,
                                        ffi.from_buffer("double[]", pooled), dimensions, normalise))
        return vectors

    def bench(self, prompt: int = 512, generation: int = 128, repeats: int = 3) -> Bench:
        """Measures a prompt and a generation after it, of so many tokens, after one round that is not counted."""
        rows = []
        stops = {i: float("-inf") for i in range(self.info.vocab_size) if self.is_stop(i)}
        never = Sampling(temperature=0, repeat_penalty=1, bias=stops)
        ids = random.Random(1).choices(range(self.info.vocab_size), k=prompt)
        with Session(self, ctx=prompt + generation) as session, session.sequence() as sequence:
            for _ in range(repeats + 1):
                sequence.truncate(0)
                begun = time.perf_counter()
                sequence.eval(ids)
                taken = time.perf_counter() - begun
                with sequence.generate((), generation, never) as reply:
                    reply.read()
                stats = reply.stats
                rows.append((prompt / taken, (stats.n_generated - 1) / max(stats.decode_s, 1e-9),
                             stats.decode_read_size / max(stats.decode_s, 1e-9)))
        return Bench(*map(statistics.median, zip(*rows[1:])))


class Session(_Handle):
    """The cache that sequences of one model share, and the memory to evaluate in.

    ctx: positions of a sequence; 0: the model's, or what memory allows up to 8192. chunk: tokens of one submit.
    kv: type of the cache's numbers, one of CACHES. n_sequences: at once, up to 64. n_positions: of all
    together. draft: generations write the same text faster, where tokens that are likely to come are guessed by this
    smaller model with the same vocabulary or by the model's own drafter (Model's target), or looked up in the text
    ("ngram"), and evaluated several at a time.
    draft_tokens: guesses at a time, up to 31; 0: as many as suit the device."""

    def __init__(self, model: Model, *, ctx: int = 0, chunk: int = 0, kv: str = "f16", n_sequences: int = 1,
                 n_positions: int = 0, draft: Draft = None, draft_tokens: int = 0) -> None:
        if isinstance(draft, str) and draft != "ngram":
            raise ValueError(f'draft is a Model, "ngram" or None, not {draft}')
        if isinstance(draft, Model):
            check(lib.peridot_draft_check(draft._p, model._p))
        self._n_draft = 0 if draft is None else draft_tokens or _DRAFT_AUTO
        drafts = isinstance(draft, Model) and draft.info.is_drafter   # by this session's own cache
        params = ffi.new("peridot_session_params *", {
            "size": ffi.sizeof("peridot_session_params"), "ctx": ctx, "chunk": chunk, "n_sequences": n_sequences,
            "n_positions": n_positions, "kv_type": CACHES.index(kv), "n_draft": self._n_draft,
            "drafter": draft._p if isinstance(draft, Model) and drafts else ffi.NULL})
        out = ffi.new("peridot_session **")
        check(lib.peridot_session_create(out, model._p, params))
        super().__init__(out[0], lib.peridot_session_free, model)
        self.model = model
        self.ctx = int(lib.peridot_session_ctx(out[0]))
        self.chunk = int(lib.peridot_session_chunk(out[0]))
        self._draft = Session(draft, ctx=min(self.ctx, draft.info.ctx_max), kv=kv, n_sequences=n_sequences,
                              n_positions=n_positions) if isinstance(draft, Model) and not drafts else None

    def close(self) -> None:
        super().close()
        if self._draft is not None:
            self._draft.close()

    def cancel(self) -> None:
        """Ends the call that is at work on the session, from any thread: it raises Cancelled."""
        lib.peridot_cancel(self._p)

    def sequence(self, *, adapters: Taken = None) -> Sequence:
        """A new sequence without tokens. adapters: the names of those of the model's that it takes, with their scales,
        and no others; None: all, as the model was opened with them. Sequences with different ones are evaluated
        together all the same."""
        out = ffi.new("peridot_sequence **")
        check(lib.peridot_sequence_create(out, self._p))
        sequence = Sequence(self, out[0])
        if adapters is not None:
            names = [string(name) for name in adapters]
            taken = ffi.new("peridot_adapter[]", list(zip(names, adapters.values())))
            check(lib.peridot_sequence_set_adapters(out[0], taken, len(names)))
        return sequence

    def load(self, path: Union[str, os.PathLike[str]]) -> Sequence:
        """A sequence that Sequence.save wrote, which goes on as that would have."""
        out = ffi.new("peridot_sequence **")
        check(lib.peridot_sequence_load(out, self._p, os.fsencode(path)))
        return Sequence(self, out[0])

    def _eval(self, prompts: list[tuple[Sequence, npt.NDArray[np.int32]]], *, first: int = 0, last: bool = False,
              logits: Optional[Callable[[int, int, Floats], object]] = None, progress: Optional[Progress] = None,
              hidden: Optional[Callable[[int, int, Floats], object]] = None) -> None:
        """Appends ids to sequences; rows come with the number of their prompt."""
        take = logits or hidden
        number = {sequence._p: i for i, (sequence, _) in enumerate(prompts)}
        calls = _Calls(progress=progress or _nothing)
        if take is not None:
            calls.row = lambda sequence, pos, row: take(number[sequence], pos, row)
        user = ffi.new_handle(calls)
        rows = ffi.new("peridot_prompt[]", [(sequence._p, _pointer(ids), len(ids)) for sequence, ids in prompts])
        params = ffi.new("peridot_eval_params *", {
            "size": ffi.sizeof("peridot_eval_params"), "first": first, "last": last, "progress": _on_progress,
            "logits": _on_row if logits else ffi.NULL, "hidden": _on_row if hidden else ffi.NULL, "user": user})
        check(lib.peridot_eval(self._p, rows, len(prompts), params))


class Sequence(_Handle):
    """One timeline of tokens. Made by Session.sequence, Session.load and Sequence.fork."""

    def __init__(self, session: Session, pointer: Any) -> None:
        super().__init__(pointer, lib.peridot_sequence_free, session)
        self.session = session
        self._borrowed: list[Any] = []   # what the library keeps of the present sampling
        self._draft: Optional[Sequence] = None   # of the draft model, since the first generation

    def close(self) -> None:
        super().close()
        if self._draft is not None:
            self._draft.close()

    @property
    def pos(self) -> int:
        """Number of tokens so far."""
        return int(lib.peridot_sequence_pos(self._p))

    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """A copy of the ids so far."""
        return np.array(ffi.unpack(lib.peridot_sequence_tokens(self._p), self.pos) if self.pos else [], np.int32)

    def eval(self, ids: Ids, *, progress: Optional[Progress] = None) -> None:
        """Appends tokens."""
        self.session._eval([(self, _ids(ids))], progress=progress)

    def logits(self, ids: Optional[Ids] = None, *, first: int = 0) -> Floats:
        """Without ids: of the last position, [n_outputs]. Else appends them and gives a row for each, or for those from
        position `first` on, [n, n_outputs]: logits after the final softcap, or label scores."""
        if ids is not None:
            return self._rows(ids, first, "logits", self.session.model.info.n_outputs)
        out = ffi.new("const float **")
        check(lib.peridot_logits(out, self._p))
        return _floats(out[0], self.session.model.info.n_outputs).copy()

    def hidden(self, ids: Ids, *, first: int = 0) -> Floats:
        """Appends the ids and gives their states after the final norm, [n, d_model], from position `first` on."""
        return self._rows(ids, first, "hidden", self.session.model.info.d_model)

    def _rows(self, ids: Ids, first: int, kind: str, width: int) -> Floats:
        array, begin = _ids(ids), max(first, self.pos)
        out = np.empty((max(self.pos + len(array) - begin, 0), width), np.float32)
        calls: dict[str, Any] = {kind: lambda i, pos, row: out.__setitem__(pos - begin, row)}
        self.session._eval([(self, array)], first=first, **calls)
        return out

    def score(self, ids: Ids, *, first: int = 1) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Appends the ids and gives, of those from position `first` on, the log-probability of each after those before
        it, and whether it was the likeliest. The position before `first` must be among the new ones. The logits are
        summed up row by row, so that a long text needs no memory for them."""
        array, begin = _ids(ids), self.pos
        if not begin < first <= begin + len(array):
            raise ValueError(f"first is {first}, and positions {begin + 1} to {begin + len(array)} can be scored")
        out, best = np.zeros(begin + len(array) - first), np.zeros(begin + len(array) - first, np.bool_)

        def take(_: int, pos: int, row: Floats) -> None:
            if pos + 1 < begin + len(array):
                top = int(row.argmax())
                total = np.exp(row - row[top], dtype=np.float64).sum()
                token = array[pos + 1 - begin]
                out[pos + 1 - first] = float(row[token]) - float(row[top]) - np.log(total)
                best[pos + 1 - first] = token == top

        self.session._eval([(self, array)], first=first - 1, logits=take)
        return out, best

    def truncate(self, n: int) -> int:
        """Keeps the first n tokens, or less in models with windows, and gives the number that remain."""
        kept = ffi.new("uint32_t *")
        check(lib.peridot_sequence_truncate(self._p, n, kept))
        return int(kept[0])

    def fork(self, n: Optional[int] = None) -> Sequence:
        """A new sequence of the first n tokens (None: all), which shares the cache up to there."""
        out = ffi.new("peridot_sequence **")
        check(lib.peridot_sequence_fork(out, self._p, self.pos if n is None else n))
        copy = Sequence(self.session, out[0])
        copy._borrowed = self._borrowed
        return copy

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the sequence to a file for Session.load: tokens, keys and values, and the generator's state."""
        check(lib.peridot_sequence_save(self._p, os.fsencode(path)))

    def set_sampling(self, sampling: Sampling) -> None:
        """How sample chooses from now on, with the generator at its beginning."""
        chain = self._chain(sampling)
        check(lib.peridot_set_sampling(self._p, chain))

    def _chain(self, sampling: Sampling) -> Any:
        values = dict(vars(sampling), size=ffi.sizeof("peridot_sampling"), n_stop=len(sampling.stop),
                      n_bias=len(sampling.bias))
        stops, schema = [string(stop) for stop in sampling.stop], values.pop("json_schema")
        values.update(stop=ffi.new("char *[]", stops), bias=ffi.new("peridot_bias[]", list(sampling.bias.items())))
        if sampling.seed is None:
            values["seed"] = random.getrandbits(32)
        if schema is not None:
            data = (schema if isinstance(schema, str) else json.dumps(schema)).encode()
            out = ffi.new("peridot_grammar **")
            check(lib.peridot_grammar_json_schema(out, self.session.model._vocab, data, len(data)))
            values["grammar"] = ffi.gc(out[0], lib.peridot_grammar_free)
        breakers = [string(text) for text in sampling.dry_breakers]
        values.update(dry_breakers=ffi.new("char *[]", breakers), n_dry_breakers=len(breakers))
        given = sum(1 << i for i, name in enumerate(_RECOMMENDED) if values[name] is not None)
        values.update((name, default) for name, default in _RECOMMENDED.items() if values[name] is None)
        self._borrowed = [stops, breakers, values]
        chain = ffi.new("peridot_sampling *", values)
        lib.peridot_model_recommends(self.session.model._p, chain, given, ffi.NULL)
        return chain

    def sample(self) -> int:
        """Draws the next token from the last position's logits. It is not appended: pass it to eval."""
        out = ffi.new("int32_t *")
        check(lib.peridot_sample(out, self._p))
        return int(out[0])

    def generate(self, prompt: Ids, n: int = 256, sampling: Optional[Sampling] = Sampling(), *,
                 progress: Optional[Progress] = None, images: Items[Image] = ()) -> Generation:
        """Appends the prompt's ids, and then at most n tokens that the model adds: an iterator over their text as it
        comes. sampling None: as set_sampling or an earlier generation left it, generator and all. Generations of
        several sequences of one session go on together: each step of one of them is a step of all. images: those whose
        ids the prompt has; they are kept until the generation ends."""
        if sampling is not None:
            self.set_sampling(sampling)
        return Generation(self, _ids(prompt), n, progress, images=images)


class Generation(_Handle, Iterator[str], AsyncIterator[str]):
    """Text as the model makes it, piece by piece: whole characters, and nothing that may yet become a stop text; also
    by `async for`, beside others of the model: all that is awaited of a model is done in one thread of its own. It ends
    when it is exhausted, closed, or dropped; what was written until then stays in the sequence, but for the last token,
    which was not evaluated: what goes on after it begins with `tokens[-1:]`."""

    def __init__(self, sequence: Sequence, prompt: npt.NDArray[np.int32], n: int,
                 progress: Optional[Progress] = None, think: int = 0, splits: bool = False, tools: Any = None,
                 chain: Any = None, images: Items[Image] = ()) -> None:
        self.tokens: list[int] = []   # ids so far, without the one that stops it
        self.thought = ""             # what the model thought before it answered: of Chat.send
        self.text = ""                # the text so far, with tools
        self.calls: list[Call] = []   # what the model calls: of Chat.send with tools
        self._pieces: deque[str] = deque()
        tokens, pieces = self.tokens, self._pieces   # not self, which the library's handle would keep alive

        def take(token: int, piece: str) -> None:
            tokens.extend([token] if token >= 0 else [])
            pieces.extend([piece] if piece else [])

        me = weakref.ref(self)

        def take_thought(token: int, piece: str) -> None:
            tokens.append(token)
            if (generation := me()) is not None:
                generation.thought += piece

        def take_call(piece: Any) -> None:
            if (generation := me()) is None:
                return
            if piece.name:
                generation.calls.append(Call(f"call_{random.getrandbits(64):016x}", text(piece.name)))
            generation.calls[-1].text += _decoded(piece.arguments, piece.size)
            generation.calls[-1].complete = bool(piece.complete)

        user = ffi.new_handle(_Calls(progress=progress or _nothing, text=take, thought=take_thought, call=take_call))
        params = ffi.new("peridot_request_params *", {
            "size": ffi.sizeof("peridot_request_params"), "prompt": _pointer(prompt), "n_prompt": len(prompt),
            "n_max": n, "text": _on_text, "progress": _on_progress, "user": user,
            "n_draft": sequence.session._n_draft, "think": think, "thought": _on_thought if splits else ffi.NULL})
        if tools is not None:
            params.tools, params.call, params.sampling = tools, _on_call, chain
        if sequence.session._draft is not None:
            sequence._draft = sequence._draft or sequence.session._draft.sequence()
            params.draft = sequence._draft._p
        out = ffi.new("peridot_request **")
        check(lib.peridot_request_create(out, sequence._p, params))
        super().__init__(out[0], lib.peridot_request_free, sequence, user, sequence._draft, list(images))
        if sequence._draft is not None:
            sequence._draft._children.add(self)
        self._session, self._n_before = sequence.session, sequence.pos
        self._status, self._stats = ffi.new("peridot_status *"), ffi.new("peridot_stats *")
        self._stats.size = ffi.sizeof("peridot_stats")

    @property
    def stats(self) -> Record:
        """What it cost so far: peridot_stats."""
        if self._free.alive:
            lib.peridot_request_done(self._p, self._status, self._stats)
        return Record(self._stats)

    def __next__(self) -> str:
        n_running = ffi.new("size_t *")
        while not self._pieces:
            if not self._free.alive:
                raise StopIteration
            if lib.peridot_request_done(self._p, self._status, self._stats):
                self.close()
                check(self._status[0])
                continue
            try:
                check(lib.peridot_session_run(self._session._p, n_running))
            except BaseException:
                self.close()
                raise
        piece = self._pieces.popleft()
        self.text += piece
        return piece

    async def __anext__(self) -> str:
        loop, thread = asyncio.get_running_loop(), self._session.model._thread
        piece = await loop.run_in_executor(thread, next, self, None)
        if piece is None:
            raise StopAsyncIteration
        return piece

    def read(self) -> str:
        """All the text that is still to come."""
        return "".join(self)


# ---- chat completions ----

def _calls_of(reply: Generation) -> dict[str, Any]:
    calls = [call for call in reply.calls if call.complete]
    return {"tool_calls": [{"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
                           for call in calls]} if calls else {}


def _finish_reason(reply: Generation, n: int) -> str:
    if any(call.complete for call in reply.calls):
        return "tool_calls"
    n_all = reply._n_before + reply.stats.n_prompt + len(reply.tokens)
    return "length" if n and len(reply.tokens) >= n or n_all >= reply._session.ctx else "stop"


def _usage(reply: Generation) -> dict[str, int]:
    n_prompt, n_reply = reply._n_before + reply.stats.n_prompt, reply.stats.n_generated
    return {"prompt_tokens": n_prompt, "completion_tokens": n_reply, "total_tokens": n_prompt + n_reply}


def _completion_parts(head: dict[str, Any], reply: Generation, n: int) -> Iterator[dict[str, Any]]:
    def part(delta: dict[str, Any], reason: Optional[str] = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**head, "object": "chat.completion.chunk", "choices": [choice]}

    yield part({"role": "assistant", "content": ""})
    for piece in reply:
        yield part({"content": piece})
    if calls := _calls_of(reply):
        yield part({"tool_calls": [{"index": i, **call} for i, call in enumerate(calls["tool_calls"])]})
    yield {**part({}, _finish_reason(reply, n)), "usage": _usage(reply)}


class Chat:
    """A conversation: each turn evaluates only what it adds.

    system: what the model is told before. template: another one than the model's; a model without one gets the messages
    as they are. think: the model is to think before it answers, or with a number in so many tokens at most, where its
    template has thoughts; a reply's are in its `thought`, and the turns that follow do not see them. tools: functions
    that the model may call, as OpenAI's chat completions have them; a reply's calls are in its `calls`, and `answer`
    goes on with their results. adapters: as of Session.sequence."""

    def __init__(self, session: Session, *, system: Optional[str] = None, template: Optional[str] = None,
                 think: Union[bool, int] = False, tools: Items[Mapping[str, Any]] = (),
                 adapters: Taken = None) -> None:
        self._sequence = session.sequence(adapters=adapters)
        self._think = _THINK_ON if think is True else int(think)
        self._template = template or (None if session.model.has_chat else "plain")
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        self._tools = list(tools)
        self._compiled = session.model._tools(self._tools, self._template) if self._tools else None
        self._last: Optional[Generation] = None   # the reply, with tools
        self._ids: list[int] = []
        self._reply: list[int] = []
        self._images: list[Image] = []   # of all turns: a place that is gone back to may be before them

    @property
    def ids(self) -> list[int]:
        """All so far."""
        return self._ids + self._reply

    def send(self, message: str, n: int = 0, sampling: Sampling = Sampling(), *,
             images: Items[Any] = ()) -> Generation:
        """The reply to a message of the user, of n tokens at most (0: as many as there is room for). The reply before
        is closed, if it was not read to its end. images: pictures before the message's text, each as Model.image takes
        it, or what that gave."""
        sequence, seen = self._sequence, self._sequence.session.model._images(images)
        for reply in list(sequence._children):
            reply.close()
        if self._tools:
            self._keep_reply()
            self._messages.append(_turn(message, len(seen)))
            self._images += seen
            return self._reply_anew(n, sampling)
        turn, model = [*self._messages, _turn(message, len(seen))], sequence.session.model
        before = self._ids + model._without_thoughts(self._reply)
        ids = before + (model.encode_conversation(turn, self._template, after=before, think=self._think != 0,
                                                  images=seen) if seen else
                        model.encode_messages(turn, self._template, after=before, think=self._think != 0))
        self._images += seen
        sequence.set_sampling(sampling)
        same = next((i for i, (a, b) in enumerate(zip(sequence.tokens, ids)) if a != b), sequence.pos)
        if same < sequence.pos:   # a thought comes first in the reply
            sequence.truncate(same)
        reply = Generation(sequence, _ids(ids[sequence.pos:]), n or sequence.session.ctx, think=self._think,
                           splits=True, images=self._images)
        self._ids, self._reply, self._messages = ids, reply.tokens, []
        return reply

    def answer(self, results: Items[str], n: int = 0, sampling: Sampling = Sampling()) -> Generation:
        """The reply to the results of the last reply's calls, in their order."""
        calls = self._last.calls if self._last is not None else []
        if len(results) != len(calls):
            raise ValueError(f"the reply has {len(calls)} calls, and {len(results)} results were given")
        self._keep_reply()
        self._messages += [{"role": "tool", "tool_call_id": call.id, "content": result}
                           for call, result in zip(calls, results)]
        return self._reply_anew(n, sampling)

    def _reply_to(self, messages: Items[Mapping[str, Any]], tools: Items[Mapping[str, Any]], n: int,
                  sampling: Sampling) -> Generation:
        """To another conversation, given whole."""
        for reply in list(self._sequence._children):
            reply.close()
        if list(tools) != self._tools:
            self._tools = list(tools)
            self._compiled = self._sequence.session.model._tools(tools, self._template) if tools else None
        self._messages = [dict(message) for message in messages]
        return self._reply_anew(n, sampling)

    def _keep_reply(self) -> None:
        """The last reply becomes a message."""
        if self._last is None:
            return
        self._last.close()
        message = {"role": "assistant", "content": self._last.text, **_calls_of(self._last)}
        self._messages.append(message)
        self._last = None

    def _reply_anew(self, n: int, sampling: Sampling) -> Generation:
        """What a template writes of results may depend on the calls before them: all is encoded anew, and of the cache
        is kept what is the same."""
        sequence, model = self._sequence, self._sequence.session.model
        ids = model.encode_conversation(self._messages, self._template, tools=self._tools, think=self._think != 0,
                                        images=self._images)
        same = next((i for i, (a, b) in enumerate(zip(sequence.tokens, ids)) if a != b), min(sequence.pos, len(ids)))
        sequence.truncate(min(same, len(ids) - 1))
        if self._compiled is None:
            sequence.set_sampling(sampling)
        self._ids, self._reply = ids, []
        self._last = Generation(sequence, _ids(ids[sequence.pos:]), n or sequence.session.ctx, think=self._think,
                                splits=True, tools=self._compiled, chain=sequence._chain(sampling),
                                images=self._images)
        self._reply = self._last.tokens
        return self._last
