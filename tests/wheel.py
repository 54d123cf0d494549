"""What a wheel must have: wheel.py WHEEL FOLDER, where FOLDER is the archive of the same system, unpacked. Libraries,
command, demo model and licences are the archive's, byte for byte; the metadata says what pip and users need; RECORD has
every file with its hash. Ends with 1 and a line for each thing that is wrong."""
import base64
import csv
import email
import hashlib
import pathlib
import re
import sys
import zipfile

wheel, archive = map(pathlib.Path, sys.argv[1:])
version, tag = re.fullmatch(r"peridot-([0-9.]+)-(py3-none-\w+)\.whl", wheel.name).groups()
info = f"peridot-{version}.dist-info/"
files = zipfile.ZipFile(wheel)
names = set(files.namelist())
wrong = []


def check(title, good):
    if not good:
        wrong.append(title)


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


metadata = email.message_from_bytes(files.read(info + "METADATA"))
check("Version", metadata["Version"] == version)
check("Requires-Python", metadata["Requires-Python"] == ">=3.9")
check("Requires-Dist", {re.match(r"\w+", line)[0] for line in metadata.get_all("Requires-Dist")} == {"cffi", "numpy"})
check("README", metadata["Description-Content-Type"] == "text/markdown" and "# Peridot" in metadata.get_payload())
about = email.message_from_bytes(files.read(info + "WHEEL"))
check("Tag, of WHEEL", about.get_all("Tag") == [tag] and about["Root-Is-Purelib"] == "false")
check("the command, of entry_points.txt", b"peridot = peridot_command:main" in files.read(info + "entry_points.txt"))
record = {name: value for name, value, _ in csv.reader(files.read(info + "RECORD").decode().splitlines())}
check("RECORD has every file", set(record) == names)
for name in names - {info + "RECORD"}:
    check(f"the hash of {name} in RECORD", record.get(name) == digest(files.read(name)))
check("types and header", {"peridot/py.typed", "peridot/peridot.h", "peridot_command.py"} <= names)

# What is not Python's.
ours = re.compile(r"peridot(\.exe)?|libperidot(-vulkan)?\.(so\..*|dll)|libmicrohttpd.*\.(so\..*|dll)|stories\.gguf")
in_archive = {digest(path.read_bytes()): path for path in archive.rglob("*") if path.is_file()}
in_wheel = {digest(files.read(name)): name for name in names if re.match("peridot/(bin|lib|share|licences)/", name)}
for value in set(in_wheel) - set(in_archive):
    check(f"{in_wheel[value]} is not the archive's", False)
for value, path in in_archive.items():
    if path.parent.name == "licences" or ours.fullmatch(path.name) and path.parent.name != "completions":
        check(f"the archive's {path.name} is not there", value in in_wheel)
check("there is more than one licence", sum(name.startswith("peridot/licences/") for name in names) > 10)
print("\n".join(f"{wheel.name}: wrong: {title}" for title in wrong) or f"{wheel.name}: {len(names)} files")
sys.exit(bool(wrong))
