import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Device, readBody, startDevice } from '../support/device.ts'

/** Where the device's session travels. */
export type Place = 'cookie' | 'header'

/** A device with several accounts, which records what it did and under which account. A test can change its behaviour by the properties. */
export interface AccountDevice {
  readonly device: Device
  /** The valid sessions: their accounts, by id. */
  readonly sessions: Map<string, string>
  /** The ids of all sessions that it ever opened, in order. */
  readonly opened: string[]
  /** How many logins of Postern's account it received. */
  logins: number
  /** How often it acted on a request for `/pulse`. */
  acts: number
  password: string
  /** What follows the session in `Set-Cookie`. */
  attributes: string
  /** How it asks for a login. */
  asks: 'redirect' | '401'
  /** Sets a cookie also after a wrong login. */
  lenient: boolean
  /** Answers each request of a session with another session, in place of the earlier one. */
  rotates: boolean
  /** The status of each login, if set. */
  loginStatus: number | undefined
  /** A login waits for this promise. */
  gate: () => Promise<void>
  /** Called with the session that a logout ends. */
  onLogout: (id: string) => void
}

const NAMES = { cookie: 'SID', header: 'X-Auth-Token' } as const

/** Postern's account at the device, and the path of its login. */
export const VIEWER = 'viewer'

/** What a session of Postern is: all cookies of a login form, one cookie, or a token in a field. */
export const SESSION_KINDS = ['form', 'cookie', 'header'] as const

export type SessionKind = (typeof SESSION_KINDS)[number]

/** `upstream.auth` for the device, without the password. `settings`: further keys of the session. */
export function accountAuth(kind: SessionKind, settings: object = {}): object {
  const login = { path: '/login', form: { username: '$user', password: '$password' } }
  const token = kind === 'form' ? {} : { token: { [kind]: NAMES[kind] } }
  const send = kind === 'header' ? { send: { header: NAMES.header } } : {}
  return { kind: 'session', user: VIEWER, session: { login, ...token, ...send, ...settings } }
}

/**
 * Starts the device. A form at `/login` signs in to its accounts, and so does JSON at every path that a lenient program takes for a
 * login. Paths: `/whoami` names the account, `/rotate` and `/logout` change the session, `/extend` prolongs it, `/closed` answers 401
 * whatever the account, `/open` needs no login, and `/pulse` acts and leads to the login page.
 */
export async function startAccountDevice(place: Place = 'cookie'): Promise<AccountDevice> {
  const device = await startDevice(async (request, response) => {
    const body = (await readBody(request)).toString()
    const path = decodeURIComponent((request.url ?? '').split('?', 1)[0] ?? '')
    const isLogin = /\/login\/*(?:;.*)?$/i.test(path)
    if (isLogin && request.method === 'POST') return login(request, body, response)
    if (isLogin || path === '/open') return answer(response, 200)
    const id = idIn(request)
    const account = self.sessions.get(id)
    if (path === '/closed') return answer(response, 401)
    if (account === undefined) {
      return self.asks === '401'
        ? answer(response, 401)
        : answer(response, 302, { Location: '/login', 'Set-Cookie': 'SID=anonymous; Path=/' })
    }
    const changed = self.rotates || path === '/rotate' ? sessionField(change(id, account)) : {}
    if (path === '/logout') {
      self.onLogout(id)
      self.sessions.delete(id)
      return answer(response, 200, { 'Set-Cookie': 'SID=; Max-Age=0; Path=/', 'X-Auth-Token': 'none' })
    }
    if (path === '/extend')
      return answer(
        response,
        200,
        place === 'header' ? sessionField(id) : cookie(id, '; Max-Age=600; Path=/'),
      )
    if (path === '/pulse') {
      self.acts += 1
      return answer(response, 303, { Location: '/login' })
    }
    return answer(response, 200, changed, account)
  })

  function idIn({ headers }: IncomingMessage): string {
    if (place === 'header') return String(headers['x-auth-token'] ?? '')
    return /(?:^|; *)SID=([^;]*)/i.exec(headers.cookie ?? '')?.[1] ?? ''
  }

  async function login(request: IncomingMessage, body: string, response: ServerResponse): Promise<void> {
    if (body.startsWith('{')) {
      self.sessions.delete(idIn(request))
      return answer(response, 200, sessionField(open(String(JSON.parse(body).user))))
    }
    self.logins += 1
    await self.gate()
    if (self.loginStatus !== undefined) return answer(response, self.loginStatus)
    const form = new URLSearchParams(body)
    const right = form.get('password') === self.password
    if (!right && self.lenient) return answer(response, 200, sessionField('worthless'))
    if (!right) return answer(response, self.asks === '401' ? 401 : 302, { Location: '/login?wrong' })
    return answer(response, self.asks === '401' ? 200 : 302, {
      ...sessionField(open(form.get('username') ?? '')),
      Location: '/home',
    })
  }

  function open(account: string): string {
    const id = randomBytes(8).toString('hex')
    self.sessions.set(id, account)
    self.opened.push(id)
    return id
  }

  function change(id: string, account: string): string {
    self.sessions.delete(id)
    return open(account)
  }

  const cookie = (id: string, attributes: string) => ({
    'Set-Cookie': `SID=${id}${attributes}`,
  })
  const sessionField = (id: string): Record<string, string | string[]> =>
    place === 'header' ? { 'X-Auth-Token': id } : cookie(id, self.attributes)

  const self: AccountDevice = {
    device,
    sessions: new Map(),
    opened: [],
    logins: 0,
    acts: 0,
    password: 'device-secret',
    attributes: '; Path=/',
    asks: place === 'header' ? '401' : 'redirect',
    lenient: false,
    rotates: false,
    loginStatus: undefined,
    gate: async () => {},
    onLogout: () => {},
  }
  return self
}

function answer(
  response: ServerResponse,
  status: number,
  fields: Record<string, string | string[]> = {},
  body = 'from the device',
): void {
  response.writeHead(status, fields).end(body)
}
