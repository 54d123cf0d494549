#!/usr/bin/env python3
"""Writes N made-up reports of peridot bench into a folder, as many machines might have saved them: with and without a
score, old ones without a machine, devices from a laptop's to a data centre's, names as long as drivers make them,
hostile texts. Arguments: a report to start from, the folder, N, and "standard" for those of bench --standard, with
checksums, one of which is wrong, and a file that is none. All say that they are made."""
import copy
import hashlib
import json
import pathlib
import random
import re
import sys

ANV = "Intel open-source Mesa driver"
DEVICES = [  # name, driver, type, vendor, GB/s, fp32 and matrix in TFLOP/s, watts
    ("AMD Radeon RX 7900 XTX (RADV NAVI31)", "radv", "discrete GPU", 0x1002, 900, 48, 95, 355),
    ("AMD Radeon 780M Graphics (RADV PHOENIX)", "radv", "integrated GPU", 0x1002, 85, 7.5, 14, 45),
    ("AMD Radeon RX 580 Series (RADV POLARIS10)", "radv", "discrete GPU", 0x1002, 215, 5.8, 0, 185),
    ("NVIDIA GeForce RTX 4090", "NVIDIA", "discrete GPU", 0x10de, 930, 76, 290, 0),
    ("NVIDIA GeForce RTX 3070 Laptop GPU (NVK GA104)", "NVK", "discrete GPU", 0x10de, 300, 9, 34, 0),
    ("NVIDIA H100 80GB HBM3", "NVIDIA", "discrete GPU", 0x10de, 2900, 60, 610, 0),
    ("Intel(R) Arc(tm) A770 Graphics (DG2)", ANV, "discrete GPU", 0x8086, 500, 17, 120, 190),
    ("Intel(R) Iris(R) Xe Graphics (TGL GT2)", ANV, "integrated GPU", 0x8086, 48, 1.9, 0, 28),
    ("Intel(R) Graphics (LNL)", ANV, "integrated GPU", 0x8086, 110, 3.8, 46, 30),
    ("Adreno X1-85", "turnip Mesa driver", "integrated GPU", 0x5143, 115, 3.8, 0, 0),
    ("Apple M2 Max (G14C B1)", "Honeykrisp", "integrated GPU", 0x106b, 340, 12, 0, 0),
    ("llvmpipe (LLVM 19.1.7, 256 bits)", "llvmpipe", "CPU", 0x10005, 9, 0.08, 0, 0),
]
CPUS = ["AMD Ryzen 7 7840U w/ Radeon 780M Graphics", "Intel(R) Core(TM) i5-1135G7 @ 2.40GHz", "AMD EPYC",
        "13th Gen Intel(R) Core(TM) i9-13900K"]
MODELS = [("gemma3-1b random", "q8_0", 1.07e9, 1.0), ("gemma2-2b random", "q4_k", 1.52e9, 2.6)]
STANDARD = [("gemma3-1b random", "q8_0", 1.07e9, 1.0), ("qwen3-4b random", "q4_0", 2.26e9, 4.0),
            ("llama3.1-8b random", "q4_k", 4.52e9, 8.0)]
HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(1)> \"'&amp; style='x'"


def machine(report, device, rng, i):
    name, driver, kind, vendor, gb, fp32, matrix, watts = device
    report["device"].update(name=name, driver=driver, type=kind, vendor_id=vendor,
                            driver_info=f"Mesa 25.{rng.randrange(4)}.{rng.randrange(9)}",
                            device_id=rng.randrange(65536), pci=f"0000:{i:02x}:00.0")
    vary = rng.uniform(0.8, 1.05)
    report["rates"].update(read=gb * 1e9 * vary, copy=0.93e9 * gb * vary, fp32=fp32 * 1e12 * vary,
                           fp16=1.9e12 * fp32 * vary, matrix=matrix * 1e12 * vary or None)
    report["rates_spread"] = {key: rng.uniform(0.001, 0.03) for key in ("read", "copy", "fp32", "fp16", "matrix")}
    report["machine"] = {"cpu": rng.choice(CPUS), "n_processors": rng.choice([2, 8, 16, 32]),
                         "memory": rng.choice([8, 16, 32, 128]) * 10**9,
                         "os": rng.choice(["Debian GNU/Linux 13 (trixie)", "Ubuntu 24.04.2 LTS", "Arch Linux"]),
                         "kernel": "Linux 6.12.48+deb13-amd64 x86_64"}
    for moment, t in ("before", 45), ("after", 70):
        report[moment] = {"power_source": rng.choice(["mains", "battery", ""]), "power_profile": "balanced",
                          "power_limit_w": watts or None, "power_w": None, "temperature_c": t + rng.randrange(15),
                          "clock_hz": rng.uniform(0.8e9, 2.7e9), "memory_clock_hz": None}


def checksum(text):
    """SHA-256 of the text without white space outside of strings, and without its last key, if that is a checksum."""
    text = re.sub(r'("(?:[^"\\]|\\.)*")|\s+', lambda found: found.group(1) or "", text)
    return hashlib.sha256(re.sub(r',"checksum":"[^"]*"}$', "}", text).encode()).hexdigest()


def test(report, base, generation, n_tokens, n_sequences, size, flops, rng, depth=0):
    rates = report["rates"]
    t = copy.deepcopy(base)
    part = rng.uniform(0.45, 0.97) if rng.random() > 0.04 else 1.12
    arithmetic = "matrix" if rates["matrix"] else "fp32"
    part *= 1 if generation else 0.6
    rate = rates["read"] / size * (n_sequences ** 0.8) if generation else rates[arithmetic] / (flops * 1e9)
    speed = rate * part * (0.8 if depth else 1)
    name = f"{'n' if generation else 'p'}{n_tokens}" + (f" b{n_sequences}" if n_sequences > 1 else "")
    name += f" @ d{depth}" if depth else ""
    t.update(name=name, generation=generation, n_tokens=n_tokens, n_sequences=n_sequences, depth=depth,
             arithmetic=arithmetic, bytes_per_s=speed * size / (n_sequences ** 0.8 if generation else 256),
             flop_per_s=speed * flops * 1e9, bandwidth_part=part if generation else 0.02,
             arithmetic_part=0.1 if generation else part, n_profiled=0, kernels=[])
    sd = speed * rng.uniform(0.002, 0.05)
    t["tokens_per_s"] = {"median": speed, "min": speed - 1.5 * sd, "max": speed + sd, "sd": sd,
                         "repeats": [speed - sd, speed, speed + sd]}
    return t


def report(base, device, model, rng, i):
    r = copy.deepcopy(base)
    name, types, size, billion = model
    machine(r, device, rng, i)
    r["model"].update(name=name, types=types, size=int(size), n_params=int(billion * 1e9), random_weights=True)
    r["date"], r["commit"] = f"2026-11-{1 + i % 28:02d}T10:00:00Z", f"{rng.getrandbits(48):012x}"
    r["made"] = True
    tests = [(False, 512, 1), (True, 128, 1), (True, 128, 8)]
    r["tests"] = [test(r, base["tests"][0], *t, size, 2 * billion, rng) for t in tests]
    return r


def standard(base, device, rng, i):
    """Its devices have memory for two models or three."""
    models = STANDARD[:2 if device[4] < 60 else 3]
    out = {"schema": 3, "set": "standard", "reports": [report(base, device, m, rng, i) for m in models]}
    for r, (name, types, size, billion) in zip(out["reports"], models):
        if r is out["reports"][0] and len(models) == 2:
            r["left_out"] = "llama3.1-8b q4_k: does not fit (6.2 GB of 4.3 GB)"
        r["tests"] += [test(r, base["tests"][0], *t, size, 2 * billion, rng, depth)
                       for *t, depth in ((False, 2048, 1, 0), (True, 128, 1, 8192))]
        r["text"] = {"n_reference": 32, "n_agree": rng.choice([32, 32, 31, 30, 28]) if i != 5 else 2,
                     "tokens": [1] * 32, "checksum": f"{rng.getrandbits(64):016x}"}
        if device[7] or device[1] == "NVIDIA":
            r["meter"] = "hwmon" if device[7] else "NVML"
            for t in r["tests"]:
                t["power_w"] = (device[7] or 300) * rng.uniform(0.5, 0.9)
                t["j_per_token"] = t["power_w"] / t["tokens_per_s"]["median"]
    if i == 14:
        for r in out["reports"]:
            r["device"].update(name=HOSTILE, driver=HOSTILE[:40])
            r["model"]["name"] = r["note"] = HOSTILE
            r["rates"].update(read=1e18, fp32=1e18)
            r["tests"][1]["tokens_per_s"]["median"] = 1e18
    text = json.dumps(out, indent=1)[:-2]
    if i == 3:
        return text + "\n}"
    return f'{text},\n "checksum": "{"0" * 64 if i == 7 else checksum(text + "}")}"\n}}'


def main():
    base = json.loads(pathlib.Path(sys.argv[1]).read_text())
    folder, n = pathlib.Path(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(1)
    folder.mkdir(exist_ok=True)
    for i in range(n):
        device = DEVICES[i % len(DEVICES)]
        name = device[0].split("(")[0].lower().strip().replace(" ", "-") or "x"
        if sys.argv[4:] == ["standard"]:
            (folder / f"{name}-{i:02d}.json").write_text(standard(base, device, rng, i))
            (folder / "no <b>report.json").write_text("{")
            continue
        if i % 5 == 4:      # an ordinary report of one model
            out = report(base, device, MODELS[1], rng, i)
        else:
            out = {"schema": 3, "score": {}, "reports": [report(base, device, m, rng, i) for m in MODELS]}
        if i == 9:          # from before reports named their machine
            for key in "machine", "before", "after", "rates_spread", "commit":
                del out[key]
        if i == 14:
            out["note"] = out["device"]["name"] = HOSTILE
            out["device"]["driver"] = "x" * 255
        (folder / f"{name}-{i:02d}.json").write_text(json.dumps(out))


if __name__ == "__main__":
    main()
