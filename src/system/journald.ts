import { fstatSync } from 'node:fs'

/**
 * Whether a file descriptor writes to journald. systemd sets `JOURNAL_STREAM` to the device and inode of that stream. A child whose output
 * is redirected inherits the variable, so the descriptor is compared with it (systemd.exec(5)).
 */
export function isJournal(
  fd: number,
  { JOURNAL_STREAM }: Readonly<Record<string, string | undefined>>,
): boolean {
  if (JOURNAL_STREAM === undefined) return false
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true })
    return JOURNAL_STREAM === `${dev}:${ino}`
  } catch {
    return false // The descriptor is closed.
  }
}

/** The severity in the prefix of a line, which journald reads and strips (sd-daemon(3)): 3 error, 4 warning, 6 information, 7 debug. */
export type Severity = 3 | 4 | 6 | 7

/** Adds the severity to each line of a text: journald takes a line without a prefix as information. Only LF ends a line for journald. */
export function withSeverity(severity: Severity, text: string): string {
  const lines = text.split('\n')
  return lines.map((line) => (line === '' ? line : `<${severity}>${line}`)).join('\n')
}
