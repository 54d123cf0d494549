/* Presses Ctrl-C at a Windows console, for tests/windows.sh: interrupt.exe FILE PROGRAM ARGUMENT... runs the program in
 * its own console, sends that console Ctrl-C when FILE is there, and ends with the program's status. A signal of the
 * terminal that Wine runs in would not do: Wine's handler for it crashes in whatever Linux code it interrupts. */
#define _WIN32_WINNT 0x0601
#include <stdio.h>
#include <wchar.h>
#include <windows.h>

static BOOL WINAPI ignore(DWORD event) { return event == CTRL_C_EVENT; }

int wmain(int argc, wchar_t **argv)
{
    static wchar_t line[4096];
    STARTUPINFOW startup = {.cb = sizeof startup};
    PROCESS_INFORMATION child;
    DWORD status = 1;
    for (int i = 2; i < argc; i++) {
        if (wcslen(line) + wcslen(argv[i]) + 4 > sizeof line / sizeof *line) return 1;
        wcscat(wcscat(wcscat(line, L"\""), argv[i]), L"\" ");
    }
    SetConsoleCtrlHandler(ignore, TRUE);
    if (argc < 3 || !CreateProcessW(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &child)) return 1;
    while (WaitForSingleObject(child.hProcess, 50) == WAIT_TIMEOUT)
        if (GetFileAttributesW(argv[1]) != INVALID_FILE_ATTRIBUTES) {
            GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0);
            break;
        }
    WaitForSingleObject(child.hProcess, INFINITE);
    GetExitCodeProcess(child.hProcess, &status);
    return (int)status;
}
