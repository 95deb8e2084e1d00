/** Names and colours (ANSI) of pino's levels. */
const LEVELS: ReadonlyMap<unknown, readonly [name: string, colour: number]> = new Map([
  [10, ['TRACE', 90]],
  [20, ['DEBUG', 34]],
  [30, ['INFO', 32]],
  [40, ['WARN', 33]],
  [50, ['ERROR', 31]],
  [60, ['FATAL', 31]],
])

const CYAN = 36
const GREY = 90

/** Control characters, which could move the cursor of a terminal or colour what follows, and the marks that reverse text. */
const UNSAFE = /[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu

/**
 * A line of the log for people: local time, level, message, and the other members as JSON. An error has its stack below, indented.
 * Any other text is returned as it is.
 *
 * @param line a JSON object and its line end
 */
export function readableLine(line: string, coloured: boolean): string {
  const { time, level, msg = '', err, ...rest } = parsed(line)
  const [name, colour] = LEVELS.get(level) ?? []
  if (name === undefined || colour === undefined) return line
  const paint = (text: string, code: number): string => (coloured ? `\x1b[${code}m${text}\x1b[39m` : text)
  const isStack = isMapping(err) && typeof err.stack === 'string'
  const members = isStack || err === undefined ? rest : { err, ...rest }
  const shown = Object.keys(members).length === 0 ? '' : ` ${paint(safe(JSON.stringify(members)), GREY)}`
  const stack = isStack
    ? `${String(err.stack)
        .split('\n')
        .map((each) => `    ${safe(each)}`)
        .join('\n')}\n`
    : ''
  return `[${clockTime(time)}] ${paint(name, colour)}: ${paint(safe(String(msg)), CYAN)}${shown}\n${stack}`
}

function safe(text: string): string {
  return text.replace(UNSAFE, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** `03:31:25.275`, in the time zone of this machine. */
function clockTime(time: unknown): string {
  const at = new Date(String(time))
  const pad = (part: number, digits = 2): string => String(part).padStart(digits, '0')
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.${pad(at.getMilliseconds(), 3)}`
}

function parsed(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line)
    return isMapping(value) ? value : {}
  } catch {
    return {}
  }
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
