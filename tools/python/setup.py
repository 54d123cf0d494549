"""A wheel that has library and command in it (tools/bundle, .ci/windows) is for the platform that PERIDOT_PLATFORM
names, such as manylinux_2_31_x86_64, and for every Python: cffi loads the library. An sdist has the sources beside the
package, and CMake builds them, with the options in CMAKE_ARGS. In a checkout there is the package alone."""
import os
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
platform = os.environ.get("PERIDOT_PLATFORM")
builds_library = sources.is_dir() and not platform


class Binary(Distribution):
    def has_ext_modules(self):
        return bool(platform or builds_library)


class Wheel(bdist_wheel):
    def get_tag(self):
        tag = super().get_tag()
        return ("py3", "none", platform or tag[2]) if platform or builds_library else tag


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
