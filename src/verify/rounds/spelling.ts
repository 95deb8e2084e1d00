import {
  apiRequest,
  passwordForm,
  type Question,
  TOKEN_PATH,
  textMember,
  tokenRequest,
  unauthorized,
} from '../exchange.ts'
import { conclude, untested } from '../verdict.ts'
import { type Check, type Round, runChecks } from './round.ts'

const PROMISES = ['C1', 'H20', 'H24'] as const

const LOGINS = ['/oauth/token/', '//oauth/token', '/oauth/%74oken', TOKEN_PATH.toUpperCase()]

/** C1, H20 and H24: what another spelling of a path, or another `Host`, lets through. */
export const spelling: Round = {
  promises: PROMISES,
  cost: ({ path }) => ({ logins: LOGINS.length, requests: 8 + disguises(path).length, seconds: 1 }),
  async run(server, { logins, admitted }) {
    if (logins.length === 0) return { judgements: untested(PROMISES, 'no login gave tokens') }
    const { path, password, url } = server.options
    const form = passwordForm(password)
    const right = apiRequest(path, admitted?.accessToken ?? '')
    const second = [url.host, 'other.invalid']
    const found = await runChecks(server, [
      ...LOGINS.map((path): Check => {
        const question = tokenRequest(form, 'with the password', { path })
        return {
          promise: 'C1',
          question: { ...question, oddity: 'respelled' },
          holds: (received) => textMember(received, 'access_token') === undefined,
          wanted: `401: only ${TOKEN_PATH} gives tokens`,
        }
      }),
      ofHosts(right, 'and no Host', []),
      ofHosts(right, 'and two Host fields, the second of another server', second),
      ofHosts(
        unauthorized(path, [], 'without a token'),
        'and two Host fields, the second of another server',
        second,
      ),
      ofHosts(right, 'and two Host fields, the first of another server', second.toReversed()),
      ...disguises(path).map(
        (other): Check => ({
          promise: 'H24',
          question: { ...unauthorized(other, [], 'without a token'), oddity: 'respelled' },
          // A redirection is no content, so it is no harm. A server error is: the server tried to serve the request.
          holds: ({ status }) => status < 500 && (status < 200 || status >= 300),
          wanted: 'a refusal: 401 or 400',
        }),
      ),
    ])
    return { judgements: conclude(PROMISES, found) }
  },
}

function ofHosts(question: Question, what: string, hosts: readonly string[]): Check {
  return {
    promise: 'H20',
    question: { ...question, what: `${question.what} ${what}`, hosts, oddity: 'malformed' },
    holds: ({ status, failure }) => failure !== undefined || (status >= 400 && status < 500),
    wanted: '400',
  }
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
