import process from 'node:process'
import { clockTime } from './format.ts'

/** Progress goes to standard error, so that standard output holds the result only. */
export function say(line: string): void {
  process.stderr.write(`[${clockTime(performance.now() / 1000).padStart(5)}] ${line}\n`)
}
