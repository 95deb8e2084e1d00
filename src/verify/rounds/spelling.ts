import { type Answer, member } from '../answer.ts'
import {
  apiRequest,
  passwordForm,
  type Question,
  TOKEN_PATH,
  tokenRequest,
  unauthorized,
} from '../question.ts'
import type { Stage } from '../stage.ts'
import type { Departure } from '../verdict.ts'
import { conclude, type Round, untested } from './round.ts'
import { grantIn } from './tokens.ts'

/** C1, H20 and H24: what another spelling of a path, or another `Host`, lets through. */
export const spelling: Round = {
  promises: ['C1', 'H20', 'H24'],
  cost: ({ path }) => ({ logins: 4, requests: 8 + disguises(path).length, seconds: 1 }),
  async run(stage) {
    const { path, password } = stage.options
    const [grant] = stage.grants
    if (grant === undefined) return untested(['C1', 'H20', 'H24'], 'no login gave tokens')
    const respelled: (Departure | undefined)[] = []
    for (const other of ['/oauth/token/', '//oauth/token', '/oauth/%74oken', TOKEN_PATH.toUpperCase()]) {
      const question = tokenRequest(passwordForm(password), 'with the password', { path: other })
      const answer = await stage.ask({ ...question, oddity: 'respelled' })
      if (givesTokens(answer))
        respelled.push(
          stage.departure(question, answer, `401: only ${TOKEN_PATH} gives tokens`, 'device API §4.3'),
        )
    }
    const hosts: (Departure | undefined)[] = []
    for (const question of hostQuestions(stage)) {
      const answer = await stage.ask(question)
      if (answer.failure === undefined && !isRefusal(answer))
        hosts.push(stage.departure(question, answer, '400', 'RFC 9112 §3.2'))
    }
    const disguised: (Departure | undefined)[] = []
    for (const other of disguises(path)) {
      const question = unauthorized(other, [], 'without a token')
      const answer = await stage.ask({ ...question, oddity: 'respelled' })
      if (letThrough(answer))
        disguised.push(stage.departure(question, answer, 'a refusal: 401 or 400', 'device API §4.3 and §5.4'))
    }
    return [...conclude('C1', respelled), ...conclude('H20', hosts), ...conclude('H24', disguised)]
  },
}

function givesTokens(answer: Answer): boolean {
  return grantIn(answer) !== undefined || typeof member(answer, 'access_token') === 'string'
}

function isRefusal({ status }: Answer): boolean {
  return status >= 400 && status < 500
}

/** A redirection is no content, so it is no harm. A server error is: the server tried to serve the request. */
function letThrough({ status }: Answer): boolean {
  return (status >= 200 && status < 300) || status >= 500
}

function hostQuestions({ options, admitted }: Stage): Question[] {
  const { url, path } = options
  const oddity = 'malformed'
  const hosts: readonly (readonly [string, readonly string[]])[] = [
    ['and no Host', []],
    ['and two Host fields, the second of another server', [url.host, 'other.invalid']],
    ['and two Host fields, the first of another server', ['other.invalid', url.host]],
  ]
  const token = admitted?.accessToken ?? ''
  return hosts.flatMap(([what, hosts], i) => [
    { ...apiRequest(path, token, `with a valid token ${what}`), hosts, oddity },
    ...(i === 1 ? [{ ...unauthorized(path, [], `without a token ${what}`), hosts, oddity } as const] : []),
  ])
}

/** Other spellings of a path, and paths that a careless server resolves to it or takes for the token endpoint. */
export function disguises(path: string): string[] {
  const [plain = '/', query] = path.split('?', 2)
  const rest = query === undefined ? '' : `?${query}`
  const respelled = [
    `/${plain}`,
    `/.${plain}`,
    `/%2e${plain}`,
    `/x/..${plain}`,
    `/x/%2e%2e${plain}`,
    `/x/..;${plain}`,
    `${TOKEN_PATH}/../..${plain}`,
    `${TOKEN_PATH}/%2e%2e/%2e%2e${plain}`,
    `/oauth%2ftoken/..${plain}`,
    `${TOKEN_PATH};/../..${plain}`,
    `${plain};${TOKEN_PATH}`,
    `${plain}%00`,
    `${plain.replace(/\/$/, '/x')}.css`,
    `${plain};x.css`,
    plain.endsWith('/') ? `${plain}?x` : `${plain}/`,
    plain.toUpperCase(),
    TOKEN_PATH.toUpperCase(),
  ]
  return [...new Set(respelled)].filter((other) => other !== plain).map((other) => `${other}${rest}`)
}
