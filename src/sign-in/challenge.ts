import { TOKEN } from '../http/fields.ts'

/** One authentication challenge. Parameter names are in lower case, values without quotes. */
export interface Challenge {
  /** In lower case. */
  readonly scheme: string
  readonly parameters: Parameters
}

export type Parameters = ReadonlyMap<string, string>

const NAME = new RegExp(TOKEN, 'y')
const QUOTED = /"((?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t \x21-\x7e\x80-\xff])*)"/y
const TOKEN68 = /[\w\-.~+/]+=*(?=[\t ]*(?:,|$))/y
const EQUALS = /[\t ]*=[\t ]*/y
const SPACES = / +/y
const SEPARATOR = /[\t ]*(?:,[\t ]*)+/y
const BLANK = /[\t ]*/y

/**
 * The challenges of all `WWW-Authenticate` fields (RFC 9110 §11.6.1). A field with a syntax error is ignored as a whole: a
 * guess where a quoted string ends is a guess about what the credentials sign.
 */
export function parseChallenges(values: readonly string[]): readonly Challenge[] {
  return values.flatMap((value) => parseField(value) ?? [])
}

/** A list of parameters without a scheme, as in `Authentication-Info`; `undefined` if it is malformed. */
export function parseParameters(value: string): Parameters | undefined {
  return parseField(`x ${value}`)?.[0]?.parameters
}

function parseField(value: string): readonly Challenge[] | undefined {
  const scan = createScanner(value)
  const challenges: { scheme: string; parameters: Map<string, string> }[] = []
  let parameterDue = false
  scan.take(SEPARATOR)
  scan.take(BLANK)
  while (!scan.atEnd()) {
    const name = scan.take(NAME)?.toLowerCase()
    if (name === undefined) return undefined
    const current = challenges.at(-1)
    if (current !== undefined && scan.take(EQUALS) !== undefined) {
      const text = scan.take(NAME) ?? unquoted(scan.take(QUOTED))
      // The device and the sidecar could use different values of a repeated parameter.
      if (text === undefined || current.parameters.has(name)) return undefined
      current.parameters.set(name, text)
      parameterDue = false
    } else if (parameterDue) return undefined
    else {
      challenges.push({ scheme: name, parameters: new Map() })
      const bare = scan.take(SPACES) === undefined || scan.take(TOKEN68) !== undefined
      parameterDue = !bare && !scan.looksAt(SEPARATOR) && !scan.atEnd()
      if (parameterDue) continue
    }
    if (scan.take(SEPARATOR) === undefined) {
      scan.take(BLANK)
      if (!scan.atEnd()) return undefined
    }
  }
  return challenges
}

function unquoted(text: string | undefined): string | undefined {
  return text?.slice(1, -1).replace(/\\(.)/g, '$1')
}

function createScanner(text: string) {
  let at = 0
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    return pattern.exec(text)?.[0]
  }
  return {
    atEnd: (): boolean => at >= text.length,
    looksAt: (pattern: RegExp): boolean => match(pattern) !== undefined,
    take(pattern: RegExp): string | undefined {
      const found = match(pattern)
      at += found?.length ?? 0
      return found
    },
  }
}
