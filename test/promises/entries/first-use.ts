import type { Promised } from '../promised.ts'

/** What an operator can rely on before the first client connects. */
export const FIRST_USE = {
  H103: {
    sentence:
      'A mistake in the configuration file is reported with its file, line and key, and what to write instead.',
    reason: 'a file of a hundred lines; an operator who sees it for the first time',
  },
  H104: {
    sentence: '`init` overwrites no file, and leaves none behind when it fails or is cancelled.',
    reason: 'a second run on a configured machine; Ctrl-C between two questions',
  },
  H105: {
    sentence: 'A configuration that `init` writes loads, and it passes `check` if the device answers.',
    reason: 'the first file must not be the first problem',
  },
  H106: {
    sentence:
      '`check` tries the addresses of both listeners, and does not fail for one that the running Postern of the same `state_dir` uses.',
    reason: 'a change is checked while the service runs',
  },
  H107: {
    sentence:
      'Each problem that `check` reports, as text or JSON, says what it means and how to mend it. Cleartext on another address than loopback, an admin listener on all addresses, `enforce: false` and a password in plain text are such problems, and each is a line of the log at the start.',
    reason: 'a bare ECONNREFUSED helps no operator; a setting for a trial stays in production',
  },
  H108: {
    sentence:
      'An address, a file or a folder that cannot be used is reported by `serve` and `check` in the same words: where its key is set, the fault and what to do. `serve` waits for an address that this machine does not have yet.',
    reason: 'ports below 1024, taken ports, missing files, encrypted keys, DER, swapped files',
  },
  H109: {
    sentence:
      'If the URL has the wrong scheme, or the certificate is refused, `check` and the log name the cause and the remedy.',
    reason: 'self-signed certificates of devices; a 500 says only tls_certificate_error',
  },
  H235: {
    sentence:
      '`init` shows what is typed at its menu only if it is one digit, and behind an address that does not answer only what is an answer. Anything else may be the password, is not tried, and is told as such.',
    reason: 'a password that is typed one question too early stays on the screen and in its scrollback',
  },
  H236: {
    sentence:
      'Each command that `npm start` prints works in any folder, and the last one is what comes next: `init` for a device of your own.',
    reason: 'the commands are copied into another terminal, which is in another folder',
  },
  H237: {
    sentence:
      'A configuration key that no code reads or no test sets, a metric that no test reads, and a limit that the gate does not count, turn a test red without Prometheus.',
    reason: 'a key or a metric that does nothing looks like one that does',
  },
} as const satisfies Readonly<Record<`H${number}`, Promised>>
