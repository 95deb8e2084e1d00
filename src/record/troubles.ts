/** A trouble for which an operator is called at night. */
interface Trouble {
  /** Its name in the table of docs/operating.md. */
  readonly trouble: string
  /** The message of the first line of the log about it. */
  readonly line: string
  /** What to do, as a clause: a field of that line, and a sentence of the alarm and of the alert. */
  readonly remedy: string
}

/**
 * The troubles by the name of the alarm, which is also that of the alert of deploy/postern.rules.yml. Log, live page, `postern status`, alert
 * and docs/operating.md take their words from here; `test/process/troubles.test.ts` makes each trouble happen and looks at all of them.
 */
export const TROUBLES = {
  PosternDeviceDown: {
    trouble: 'the device is down',
    line: 'the device is down',
    remedy:
      'see whether it is on, and whether upstream.url is its address: postern check connects to it and says what fails',
  },
  PosternDeviceSlow: {
    trouble: 'the device is slow',
    line: 'the device is slow',
    remedy:
      'if it breaks down under load, remove upstream.max_in_flight: the number is then learned, up to 4; if it can serve more at once, set a higher number',
  },
  PosternDeviceBroke: {
    trouble: 'the device crashes under load',
    line: 'one more request at once broke the device: it gets no more until you run postern retry',
    remedy:
      'do nothing if it is back: it gets no more at once, also after a restart; postern retry lets one more be tried',
  },
  PosternPasswordGuessing: {
    trouble: 'passwords are sprayed',
    line: 'passwords are being guessed',
    remedy:
      'correct the client if it is yours; to keep others out, list the networks of your clients in listen.allow, or block the addresses in a firewall',
  },
  PosternRateLimiting: {
    trouble: 'clients hit the limit',
    line: 'clients are over their limit',
    remedy:
      '"At the limit" on the live page has the clients: correct the one that asks so often. Raise limits.api.requests, or the limit of the name, only if this use is normal. If all have one address, it is a proxy: name it in listen.trusted_proxies',
  },
  PosternCertificateExpires: {
    trouble: 'the certificate is near its end',
    line: 'the certificate expires soon',
    remedy:
      'renew it and replace both files of listen.tls: a running Postern takes them at once. If an ACME client renews them, find out why it did not',
  },
  PosternTokensUnsaved: {
    trouble: 'the disk is full',
    line: 'token file: serving from memory',
    remedy:
      'make room in state_dir, or make it writable, before any restart: the file is then completed within seconds',
  },
  PosternTokenFileBroken: {
    trouble: 'the token file is broken',
    line: 'token file: unusable, set aside; starting empty',
    remedy:
      'let clients log in again, and look at the disk of state_dir: journalctl -k shows its errors. The file is kept beside the new one',
  },
  PosternSharedStoreDown: {
    trouble: 'the shared store is gone',
    line: 'the shared store does not respond: see tokens.offline_grace',
    remedy:
      'start it, or correct its address or user (tokens.store): postern check says which. Postern reconnects by itself',
  },
  PosternReloadFailed: {
    trouble: 'a reload is refused',
    line: 'configuration not reloaded: the previous one stays in effect',
    remedy:
      'correct it: the file is read again as soon as it changes. postern check --quiet names all that is wrong',
  },
} as const satisfies Readonly<Record<string, Trouble>>
