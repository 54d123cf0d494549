"""A wheel that has the library in it is for one platform, and for every Python: cffi loads it. tools/bundle puts it into
the package; an sdist has the sources of it beside the package, and CMake builds it, with the options in CMAKE_ARGS. In a
checkout there is the package alone."""
import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

here = Path(__file__).resolve().parent
sources = here / "source"   # of an sdist
has_library = any(here.glob("peridot/lib/libperidot.so*"))
builds_library = sources.is_dir() and not has_library


class Binary(Distribution):
    def has_ext_modules(self):
        return has_library or builds_library


class Wheel(bdist_wheel):
    def get_tag(self):
        tag = super().get_tag()
        if builds_library:
            return "py3", "none", tag[2]
        if not has_library:
            return tag
        libc = platform.libc_ver()[1].replace(".", "_")
        return "py3", "none", f"manylinux_{libc}_{platform.machine()}"


class Sources(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        top = sources if sources.is_dir() else here.parents[1]
        for name in ("CMakeLists.txt", "LICENSE", "include", "models/stories.gguf", "shaders", "src", "tools/cmake",
                     "tools/completions", "tools/peridot", "tools/third_party"):
            copy = Path(base_dir, "source", name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if (top / name).is_dir():
                shutil.copytree(top / name, copy)
            else:
                shutil.copy2(top / name, copy)


class Build(build_py):
    def run(self):
        super().run()
        if builds_library:
            self.build_library(here / "build" / "cmake", here / "build" / "installed")

    def build_library(self, build, installed):
        options = shlex.split(os.environ.get("CMAKE_ARGS", "")) + (["-G", "Ninja"] if shutil.which("ninja") else [])
        for step in (["-S", sources, "-B", build, "-DPERIDOT_TESTS=OFF", "-DBUILD_SHARED_LIBS=ON",
                      "-DCMAKE_INSTALL_LIBDIR=lib", *options],
                     ["--build", build, "--parallel"],
                     ["--install", build, "--prefix", installed, "--component", "run", "--strip"]):
            subprocess.run(["cmake", *step], check=True)
        for pattern in ("lib/libperidot.so.?.?", "bin/peridot", "share/peridot/*"):
            for path in installed.glob(pattern):
                copy = Path(self.build_lib, "peridot", path.relative_to(installed))
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)


setup(distclass=Binary, cmdclass={"bdist_wheel": Wheel, "build_py": Build, "sdist": Sources})
