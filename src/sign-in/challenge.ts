import { TOKEN } from '../http/fields.ts'

/** One authentication challenge. Parameter names are in lower case, values without quotes. */
interface Challenge {
  /** In lower case. */
  readonly scheme: string
  readonly parameters: Parameters
}

export type Parameters = ReadonlyMap<string, string>

const QUOTED = String.raw`"((?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t \x21-\x7e\x80-\xff])*)"`
/** The first parameter of a challenge follows its scheme. */
const PARAMETER = String.raw`(?:(${TOKEN}) +)?(${TOKEN})[\t ]*=[\t ]*(?:(${TOKEN})|${QUOTED})`
/** A scheme without parameters; it may have a token68. */
const BARE = String.raw`(${TOKEN})(?: +[\w\-.~+/]+=*)?`
const ELEMENT = new RegExp(String.raw`(?:${PARAMETER}|${BARE})[\t ]*(?:,[\t ,]*|$)`, 'y')

/**
 * The challenges of all `WWW-Authenticate` fields (RFC 9110 §11.6.1). A field with a syntax error is ignored as a whole: a guess where a
 * quoted string ends would be a guess about what the credentials sign.
 */
export function parseChallenges(values: readonly string[]): readonly Challenge[] {
  return values.flatMap((value) => parseField(value) ?? [])
}

/** A list of parameters without a scheme, as in `Authentication-Info`; `undefined` if it is malformed. */
export function parseParameters(value: string): Parameters | undefined {
  return parseField(`x ${value}`)?.[0]?.parameters
}

function parseField(value: string): readonly Challenge[] | undefined {
  const challenges: { scheme: string; parameters: Map<string, string> }[] = []
  ELEMENT.lastIndex = /^[\t ,]*/.exec(value)?.[0].length ?? 0
  while (ELEMENT.lastIndex < value.length) {
    const element = ELEMENT.exec(value)
    if (element === null) return undefined
    const [, first, name, token, quoted = '', bare] = element
    const scheme = first ?? bare
    if (scheme !== undefined) challenges.push({ scheme: scheme.toLowerCase(), parameters: new Map() })
    if (name === undefined) continue
    const parameters = challenges.at(-1)?.parameters
    const key = name.toLowerCase()
    // The device and the sidecar could use different values of a repeated parameter.
    if (parameters === undefined || parameters.has(key)) return undefined
    parameters.set(key, token ?? quoted.replace(/\\(.)/g, '$1'))
  }
  return challenges
}
