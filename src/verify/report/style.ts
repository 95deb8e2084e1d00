import { styleText } from 'node:util'
import type { Verdict } from '../verdict.ts'

/** Where text is shown. */
export interface Display {
  /** Whether text may be coloured. */
  readonly colour: boolean
  /** Columns of a terminal, on which a progress line replaces the one before; undefined: a log, in which each has its own line. */
  readonly columns: number | undefined
}

/** What `displayOf` looks at. */
export interface Output {
  readonly isTTY?: boolean
  readonly columns?: number
}

/** Colour only on a terminal, and never with NO_COLOR (no-color.org) or a terminal that knows no codes. */
export function displayOf(output: Output, env: Readonly<Record<string, string | undefined>>): Display {
  const capable = output.isTTY === true && env.TERM !== 'dumb'
  return {
    colour: capable && (env.NO_COLOR ?? '') === '',
    columns: capable ? (output.columns ?? 80) : undefined,
  }
}

type Result = Verdict['result']

/** The results in the order in which the table groups them: the one to act on stands last, above the prompt. */
export const RESULTS: readonly Result[] = ['kept', 'not testable', 'broken']

const COLOURS = { kept: 'green', 'not testable': 'yellow', broken: 'red' } as const

/** A result in a column of its own, coloured where the display allows it. */
export function label(result: Result, { colour }: Pick<Display, 'colour'>): string {
  const text = (result === 'broken' ? 'BROKEN' : result).padEnd('not testable'.length)
  return colour ? styleText(COLOURS[result], text, { validateStream: false }) : text
}

/** Control characters, and those that turn the direction of what follows: a response could rewrite the screen with them. */
const INVISIBLE = /[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu

/** Text of a server on one line, with everything invisible as `\x1b` or `\u202e`. */
export function printable(text: string): string {
  return text.replace(INVISIBLE, (character) => {
    const code = character.charCodeAt(0).toString(16)
    return code.length > 2 ? `\\u${code.padStart(4, '0')}` : `\\x${code.padStart(2, '0')}`
  })
}

/** `1 login`, `2 logins`. */
export function counted(number: number, what: string): string {
  return `${number} ${number === 1 ? what : `${what}s`}`
}

/** Seconds as `45 s` or `6 min 30 s`. */
export function duration(seconds: number): string {
  if (seconds < 1) return 'less than 1 s'
  const whole = Math.round(seconds)
  const [minutes, rest] = [Math.floor(whole / 60), whole % 60]
  return minutes === 0 ? `${rest} s` : rest === 0 ? `${minutes} min` : `${minutes} min ${rest} s`
}
