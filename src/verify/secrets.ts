import { OUTSIDE } from '../promises/promises.ts'
import { shownBy } from './encodings.ts'
import { createSought, type Sought, withoutSpans } from './sought.ts'

/** The password and the tokens of a run. No text that leaves the run shows one of them, in any usual encoding. */
export interface Secrets {
  /** Every access token and refresh token that the server has shown. */
  readonly tokens: ReadonlySet<string>
  /** Reads the tokens in the body of a response, and returns them. */
  learn(body: string): readonly string[]
  /** A text with `***` in place of each secret and of the first half of one. A text that cannot be masked in part is replaced as a whole. */
  mask(text: string): string
}

/** A shorter one is found by chance in any text (characters). */
const SHORTEST = 4

/** To mask `password` in the texts of every report would tell that it is the password. */
const OWN_TEXTS = [...OUTSIDE.values()].map(({ sentence }) => sentence).join('\n')

/** What stands for a text with a secret in an encoding that has no pattern. */
const WITHHELD = '*** (withheld: it shows a secret)'

/** @param password the first secret */
export function createSecrets(password: string): Secrets {
  const tokens = new Set<string>()
  const secrets = new Set<string>()
  const sought = new Map<string, Sought>()

  function add(secret: string): void {
    if (secret.length < SHORTEST || secrets.has(secret) || OWN_TEXTS.includes(secret)) return
    secrets.add(secret)
    for (const each of createSought(secret, OWN_TEXTS)) sought.set(each.text, each)
  }

  /** The forms of secrets whose stem is in the text, in any usual encoding. */
  function soughtIn(text: string): readonly Sought[] {
    const isShown = shownBy(text)
    return [...sought.values()].filter(({ stem }) => isShown(stem))
  }

  add(password)
  return {
    tokens,
    learn(body) {
      const found = tokensIn(body)
      for (const token of found) {
        tokens.add(token)
        add(token)
      }
      return found
    },
    mask(text) {
      const shown = soughtIn(text)
      if (shown.length === 0) return text
      const spans = shown.flatMap((each) => each.find(text))
      const masked = withoutSpans(text, spans, '***')
      return soughtIn(masked).length === 0 ? masked : WITHHELD
    },
  }
}

const NAME = /^(?:access|refresh)_?token$/i

/** In what is not JSON, or only its start. A shorter value may be a word of a sentence. */
const LOOSE = /(?:access|refresh)_?token["']?\s*[=:]\s*["']?([\w.~+/=-]{16,})/gi

function tokensIn(body: string): readonly string[] {
  if (!/token/i.test(body)) return []
  try {
    return [...membersNamed(JSON.parse(body), false)]
  } catch {
    return [...body.matchAll(LOOSE)].map(([, token = '']) => token)
  }
}

/** The texts and numbers in members with the name of a token, at any depth. */
function* membersNamed(value: unknown, named: boolean): Generator<string, void, void> {
  if (typeof value === 'object' && value !== null) {
    for (const [name, member] of Object.entries(value)) yield* membersNamed(member, named || NAME.test(name))
  } else if (
    named &&
    (typeof value === 'string' || typeof value === 'number') &&
    String(value).length >= SHORTEST
  )
    yield String(value)
}
