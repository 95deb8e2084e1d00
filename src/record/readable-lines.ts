import { prettyFactory } from 'pino-pretty'
import { escaped } from '../system/text.ts'

/**
 * Control characters below the blank, except the line feed: a terminal would move its cursor, or colour the text behind them. JSON escapes
 * them, a stack does not.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const CONTROLS = /[\0-\x09\x0b-\x1f]/g

/** Characters that JSON does not escape: DEL, the control characters above it, line separators, and marks of the text direction. */
const UNESCAPED = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/**
 * Returns a function that turns a line of the log into a readable text: local time, level, message, the other members as JSON, and an error
 * below. pino-pretty writes it, but trusts messages and stacks. Here no text of a client begins a line, or reaches the terminal as a
 * control character. A line that is no JSON object is returned unchanged.
 */
export function readableLines(coloured: boolean): (line: string) => string {
  const write = prettyFactory({
    colorize: coloured,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
    messageFormat: (log, key) => oneLine(log[key] ?? ''),
  })
  return (line) => {
    const record = parsed(line)
    return record === undefined ? line : escaped(write(record), UNESCAPED)
  }
}

function oneLine(value: unknown): string {
  return escaped(escaped(String(value), CONTROLS), /\n/g)
}

/** The object in a line; undefined without one. Escapes control characters in the members that pino-pretty would write unchanged. */
function parsed(line: string): object | undefined {
  try {
    const value: unknown = JSON.parse(line, (key, member) => {
      if (key === 'stack') return escaped(String(member), CONTROLS)
      return key === 'time' ? oneLine(member) : member
    })
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
