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
 * below. A request is one short line: `GET /api/status 200 42 ms 127.0.0.1 monitor`. pino-pretty writes the text, but trusts messages and
 * stacks. Here no text of a client begins a line, or reaches the terminal as a control character. A line that is no JSON object is returned
 * unchanged.
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
    return record === undefined ? line : escaped(write(shortened(record)), UNESCAPED)
  }
}

/** The members of a request that tell why it did not end as usual. */
const UNUSUAL = ['refusal', 'end', 'ended_for', 'would_refuse'] as const

/** A line of the access log as a message. Only a request that did not end as usual keeps its id, which `postern explain` takes. */
function shortened(record: LogRecord): LogRecord {
  const { level, time, msg, method, path, status, ms, client, name = '', request_id } = record
  if (msg !== 'request' || status === undefined) return record
  const words = `${method} ${path} ${status} ${ms} ms ${client} ${name}`.trimEnd()
  const reasons = UNUSUAL.filter((key) => record[key] !== undefined).map((key) => [key, record[key]])
  const isUsual = reasons.length === 0 && Number(status) < 500
  return { level, time, msg: words, ...(!isUsual && { request_id }), ...Object.fromEntries(reasons) }
}

function oneLine(value: unknown): string {
  return escaped(escaped(String(value), CONTROLS), /\n/g)
}

/** An object of the log. */
type LogRecord = Readonly<Record<string, unknown>>

/** The object in a line; undefined without one. Escapes control characters in the members that pino-pretty would write unchanged. */
function parsed(line: string): LogRecord | undefined {
  try {
    const value: unknown = JSON.parse(line, (key, member) => {
      if (key === 'stack') return escaped(String(member), CONTROLS)
      return key === 'time' ? oneLine(member) : member
    })
    const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value)
    // Proof of the cast: the members of an object have names.
    return isRecord ? (value as LogRecord) : undefined
  } catch {
    return undefined
  }
}
