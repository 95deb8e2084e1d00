/** What an operator can rely on before the first client connects. */
export const FIRST_USE = {
  H103: 'A mistake in the configuration file is reported with its file, line and key, and what to write instead.',
  H104: '`init` overwrites no file, and leaves none behind when it fails or is cancelled.',
  H105: 'A configuration that `init` writes loads, and it passes `check` if the device answers.',
  H106: '`check` tries the addresses of both listeners, and does not fail for one that the running Postern of the same `state_dir` uses.',
  H107: 'Each problem that `check` reports, as text or JSON, says what it means and how to mend it. Cleartext on another address than loopback (unless `listen.trusted_proxies` names a proxy on another machine), an admin listener on all addresses, `enforce: false` and a password in plain text are such problems, and each is a line of the log at the start.',
  H108: 'An address, a file or a folder that cannot be used is reported by `serve` and `check` in the same words: where its key is set, the fault and what to do. `serve` waits for an address that this machine does not have yet.',
  H109: 'If the URL has the wrong scheme, or the certificate is refused, `check` and the log name the cause and the remedy.',
  H235: '`init` shows what is typed at its menu only if it is one digit, and behind an address that does not answer only what is an answer. Anything else may be the password, is not tried, and is told as such.',
  H236: 'Each command that `npm start` prints works in any folder, and the last one is what comes next: `init` for a device of your own.',
  H237: 'A configuration key that no code reads or no test sets, a metric that no test reads, and a limit that the gate does not count, turn a test red without Prometheus.',
  H358: '`postern try` requests a path as a client does: with a token for the password, which it asks for without showing it, or with a token from a file. It prints the status, the limits, the body byte for byte, and the same request for curl with no secret on a command line. Then it ends its login, if `oauth.revocation_path` lets clients do that.',
  H359: '`postern try` sends nothing to a server with another certificate than the configured one. Without a response it says what would help: for a sidecar that does not run, a wrong password, a used-up limit, a token that has ended.',
} as const satisfies Readonly<Record<`H${number}`, string>>
