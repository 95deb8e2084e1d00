import { fstatSync } from 'node:fs'

/**
 * Whether journald reads what is written to a file descriptor. systemd names the device and inode of that stream in `JOURNAL_STREAM`, and
 * programs whose output goes elsewhere inherit the variable, too (systemd.exec(5)).
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

/** The severities that journald reads from the prefix of a line, and strips (sd-daemon(3)): 3 error, 4 warning, 6 information, 7 debug. */
export type Severity = 3 | 4 | 6 | 7

/** A text of one or more lines, each with its severity. A line without one would count as information. Only a line feed ends a line there. */
export function withSeverity(severity: Severity, text: string): string {
  const lines = text.split('\n')
  return lines.map((line) => (line === '' ? line : `<${severity}>${line}`)).join('\n')
}
