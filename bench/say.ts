import process from 'node:process'

/** Progress goes to standard error, so that standard output holds the result only. */
export function say(line: string): void {
  process.stderr.write(`${line}\n`)
}
