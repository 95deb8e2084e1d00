import {
  apiRequest,
  passwordForm,
  type Question,
  TOKEN_PATH,
  tokenRequest,
  unauthorized,
} from '../question.ts'
import { member } from '../received.ts'
import type { Server } from '../server.ts'
import { conclude, untested } from '../verdict.ts'
import { type Admitted, type Check, type Round, runChecks } from './round.ts'

/** C1, H20 and H24: what another spelling of a path, or another `Host`, lets through. */
export const spelling: Round = {
  promises: ['C1', 'H20', 'H24'],
  cost: ({ path }) => ({ logins: 4, requests: 8 + disguises(path).length, seconds: 1 }),
  async run(server, { logins, admitted }) {
    if (logins.length === 0) return { judgements: untested(['C1', 'H20', 'H24'], 'no login gave tokens') }
    const { path, password } = server.options
    const found = await runChecks(server, [
      ...respelledLogins(password),
      ...hostQuestions(server, admitted).map(
        (question): Check => ({
          promise: 'H20',
          question,
          holds: ({ status, failure }) => failure !== undefined || (status >= 400 && status < 500),
          wanted: '400',
          clause: 'RFC 9112 §3.2',
        }),
      ),
      ...disguises(path).map(
        (other): Check => ({
          promise: 'H24',
          question: { ...unauthorized(other, [], 'without a token'), oddity: 'respelled' },
          // A redirection is no content, so it is no harm. A server error is: the server tried to serve the request.
          holds: ({ status }) => status < 500 && (status < 200 || status >= 300),
          wanted: 'a refusal: 401 or 400',
          clause: 'device API §4.3 and §5.4',
        }),
      ),
    ])
    return { judgements: conclude(['C1', 'H20', 'H24'], found) }
  },
}

function respelledLogins(password: string): readonly Check[] {
  return ['/oauth/token/', '//oauth/token', '/oauth/%74oken', TOKEN_PATH.toUpperCase()].map((path) => ({
    promise: 'C1',
    question: { ...tokenRequest(passwordForm(password), 'with the password', { path }), oddity: 'respelled' },
    holds: (received) => typeof member(received, 'access_token') !== 'string',
    wanted: `401: only ${TOKEN_PATH} gives tokens`,
    clause: 'device API §4.3',
  }))
}

function hostQuestions({ options: { url, path } }: Server, admitted: Admitted | undefined): Question[] {
  const oddity = 'malformed'
  const valid = (hosts: readonly string[], what: string): Question => {
    const question = apiRequest(path, admitted?.accessToken ?? '', `with a valid token ${what}`)
    return { ...question, hosts, oddity }
  }
  const second = [url.host, 'other.invalid']
  return [
    valid([], 'and no Host'),
    valid(second, 'and two Host fields, the second of another server'),
    {
      ...unauthorized(path, [], 'without a token and two Host fields, the second of another server'),
      hosts: second,
      oddity,
    },
    valid(['other.invalid', url.host], 'and two Host fields, the first of another server'),
  ]
}

/** Other spellings of a path, and paths that a careless server resolves to it, takes for the token endpoint, or for a file. */
function disguises(path: string): string[] {
  const [plain = '/', query] = path.split('?', 2)
  const rest = query === undefined ? '' : `?${query}`
  const prefixes = ['/', '/.', '/%2e', '/x/..', '/x/%2e%2e', '/x/..;', `${TOKEN_PATH}/../..`]
  prefixes.push(`${TOKEN_PATH}/%2e%2e/%2e%2e`, '/oauth%2ftoken/..', `${TOKEN_PATH};/../..`)
  const respelled = [
    ...prefixes.map((prefix) => prefix + plain),
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
