/** What an operator can rely on before the first client connects. */
export const FIRST_USE = {
  H103: 'A mistake in the configuration file is reported with its file, line and key, and what to write instead.',
  H104: '`init` overwrites no file but the untouched one of a package, and leaves none behind when it fails or is cancelled.',
  H105: 'A configuration that `init` writes loads, and it passes `check` if the device answers.',
  H106: '`check` tries the addresses of both listeners, and does not fail for one that the running Postern of the same `state_dir` uses.',
  H107: 'Each problem that `check` reports, as text or JSON, says what it means and how to mend it. Cleartext on another address than loopback (unless `listen.trusted_proxies` names a proxy on another machine), an admin listener on all addresses, `enforce: false` and a password in plain text are such problems, and each is a line of the log at the start.',
  H108: 'An address, a file or a folder that cannot be used is reported by `serve` and `check` in the same words: where its key is set, the fault and what to do. `serve` waits for an address that this machine does not have yet.',
  H109: 'If the URL has the wrong scheme, or the certificate is refused, `check` and the log name the cause and the remedy.',
  H369: '`init` finds a Basic or Digest login of the device, and a login form that Postern can send as it stands. It says what it saw, tries the account if its password is typed, and writes `upstream.auth`.',
  H370: '`init` writes what it finds that the device needs: `reuse: never`, `parser: tolerant`, `host`, `version`, and fields that are left out.',
  H371: '`init` sets `oauth.revocation_path: /oauth/revoke`, unless the device answers that path otherwise than a path that it cannot have.',
  H372: '`init` fills the configuration of a package if no byte of it was changed; an edited one it leaves alone.',
  H368: 'The first line of `check` says that Postern can start and with which command, or how many things there are to mend.',
  H367: 'In a folder with `postern.yaml` no command needs `--config`, and each says which file it reads. If another user than root may write the file or the folder, it is refused, with its owner, its mode and what to do.',
  H235: '`init` shows what is typed at its menu only if it is one digit, and behind an address that does not answer only what is an answer. Anything else may be the password, is not tried, and is told as such.',
  H236: 'Each command that `npm start` prints works in any folder, and the last one is what comes next: `init` for a device of your own.',
  H237: 'A configuration key that no code reads or no test sets, a metric that no test reads, and a limit that the gate does not count, turn a test red without Prometheus.',
} as const satisfies Readonly<Record<`H${number}`, string>>
