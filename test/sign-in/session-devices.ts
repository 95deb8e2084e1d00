import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { type Device, readBody, startDevice } from '../support/device.ts'
import { unusedPort } from '../support/raw.ts'
import { needs } from '../support/tools.ts'
import { listening } from './devices.ts'

/** A device whose login gives a token. A test can change its behaviour by the properties. */
export interface SessionDevice {
  readonly device: Device
  /** The valid sessions: their tokens, by id. */
  readonly sessions: Map<string, string>
  password: string
  /** The bodies of all logins. */
  readonly logins: string[]
  /** The targets of all logouts of a valid session. */
  readonly logouts: string[]
}

const USER = 'admin'

function answer(
  response: ServerResponse,
  status: number,
  fields: Record<string, string | string[]> = {},
  body = '',
) {
  response.writeHead(status, fields)
  response.end(body)
}

const SESSIONS = '/redfish/v1/SessionService/Sessions'

export interface RedfishDevice extends SessionDevice {
  /** What `Location` of a login names, for the path of the session. */
  location: (path: string) => string
  /** The status of every page. */
  onRead: () => number
  /** Called for a logout; the device answers it when this is done. */
  onLogout: () => Promise<void>
}

/**
 * Starts a management controller (DSP0266): four sessions and no more. `/forbidden` answers 401 whatever the session, and every
 * page repeats the token.
 */
export async function startRedfishDevice(): Promise<RedfishDevice> {
  const device = await startDevice(async (request, response) => {
    const body = (await readBody(request)).toString()
    const { url = '', method } = request
    if (url === SESSIONS && method === 'POST') return login(request, body, response)
    const token = String(request.headers['x-auth-token'])
    const id = [...redfish.sessions].find(([, each]) => each === token)?.[0]
    if (id === undefined || url === '/forbidden') return answer(response, 401)
    if (method === 'DELETE' && url.startsWith(`${SESSIONS}/`)) {
      redfish.logouts.push(url)
      await redfish.onLogout()
      redfish.sessions.delete(url.slice(SESSIONS.length + 1))
      return answer(response, 204)
    }
    return answer(response, redfish.onRead(), { 'x-auth-token': token, 'X-Other': 'kept' }, 'from the device')
  })

  function login(request: IncomingMessage, body: string, response: ServerResponse) {
    redfish.logins.push(body)
    if (request.headers['content-type'] !== 'application/json') return answer(response, 415)
    if (body !== JSON.stringify({ UserName: USER, Password: redfish.password })) return answer(response, 401)
    if (redfish.sessions.size >= 4) return answer(response, 503)
    const [id, token] = [String(redfish.logins.length), randomBytes(16).toString('hex')]
    redfish.sessions.set(id, token)
    return answer(
      response,
      201,
      { 'X-Auth-Token': token, Location: redfish.location(`${SESSIONS}/${id}`) },
      '{}',
    )
  }

  const redfish: RedfishDevice = {
    device,
    sessions: new Map(),
    password: 'pä"ss\\ $user $& %22',
    logins: [],
    logouts: [],
    location: (path) => path,
    onRead: () => 200,
    onLogout: async () => {},
  }
  return redfish
}

/** `upstream.auth` for it, without the password. */
export const redfishAuth = {
  kind: 'session',
  user: USER,
  session: {
    login: { path: SESSIONS, json: { UserName: '$user', Password: '$password' } },
    token: { header: 'X-Auth-Token' },
    send: { header: 'X-Auth-Token' },
    logout: { method: 'DELETE' },
  },
}

/** Starts transmission's RPC: any request without its token gets 409 and the token. */
export async function startTransmissionModel(): Promise<SessionDevice> {
  const NAME = 'X-Transmission-Session-Id'
  const device = await startDevice(async (request, response) => {
    await readBody(request)
    const [token = ''] = model.sessions.values()
    if (request.headers[NAME.toLowerCase()] === token) return answer(response, 200, {}, 'from the device')
    model.logins.push('')
    return answer(response, 409, { [NAME]: token }, '<h1>409: Conflict</h1>')
  })
  const sessions = new Map([['', 'first']])
  const model: SessionDevice = { device, sessions, password: '', logins: [], logouts: [] }
  return model
}

/** Starts transmission-daemon. Skips the test where it is missing. */
export async function startTransmission(): Promise<{ readonly url: string }> {
  needs('transmission-daemon')
  const port = await unusedPort()
  const folder = temporaryDirectory()
  const quiet = {
    'dht-enabled': false,
    'lpd-enabled': false,
    'port-forwarding-enabled': false,
    'pex-enabled': false,
  }
  const rpc = { 'rpc-bind-address': '127.0.0.1', 'rpc-port': port, 'rpc-host-whitelist-enabled': false }
  const settings = { ...quiet, ...rpc, 'peer-port': await unusedPort(), 'bind-address-ipv4': '127.0.0.1' }
  writeFileSync(join(folder, 'settings.json'), JSON.stringify(settings))
  const child = spawn('transmission-daemon', ['-f', '-g', folder, '-w', folder], { stdio: 'ignore' })
  closeLater(async () => {
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  })
  await listening(port)
  return { url: `http://127.0.0.1:${port}` }
}

/** `upstream.auth` for transmission. */
export const transmissionAuth = {
  kind: 'session',
  session: {
    login: { method: 'GET', path: '/transmission/rpc' },
    token: { header: 'X-Transmission-Session-Id' },
    send: { header: 'X-Transmission-Session-Id' },
    expired: [409],
  },
}

export interface RouterDevice extends SessionDevice {
  /** How a request shows its session. */
  shownIn: (request: IncomingMessage) => string | undefined
  /** How many requests a session lasts. */
  lasts: number
  /** The body of the response to a login. */
  reply: (token: string) => string
}

/** Starts a router: a form or JSON login at `/api/login`, the session id in JSON, and sessions that expire after some requests. */
export async function startRouterDevice(): Promise<RouterDevice> {
  let left = 0
  const device = await startDevice(async (request, response) => {
    const body = (await readBody(request)).toString()
    if (request.url === '/api/login') {
      router.logins.push(body)
      const given = body.startsWith('{') ? JSON.parse(body).pass : new URLSearchParams(body).get('pass')
      if (given !== router.password) return answer(response, 200, {}, '{"code":1,"error":"wrong"}')
      const token = randomBytes(8).toString('hex')
      router.sessions.clear()
      router.sessions.set('1', token)
      left = router.lasts
      return answer(response, 200, { 'Set-Cookie': `SID=${token}; Path=/` }, router.reply(token))
    }
    if (request.url === '/api/logout') {
      router.logouts.push('/api/logout')
      router.sessions.clear()
      return answer(response, 200)
    }
    left -= 1
    if (left < 0) router.sessions.clear()
    const shown = router.shownIn(request)
    if (shown === undefined || shown !== router.sessions.get('1')) return answer(response, 403)
    return answer(response, 200, { 'Set-Cookie': [`SID=${shown}`, 'theme=dark'] }, 'from the device')
  })
  const router: RouterDevice = {
    device,
    sessions: new Map(),
    password: 'a&b=c "d" $user',
    logins: [],
    logouts: [],
    shownIn: () => undefined,
    lasts: Number.POSITIVE_INFINITY,
    reply: (token) => JSON.stringify({ code: 0, 'a/b': [{ 'm~n': token }] }),
  }
  return router
}

/** A management controller whose login sets two cookies. A request that changes something shows one of them in a field, too. */
export async function startCsrfDevice() {
  const mint = (): string => randomBytes(8).toString('hex')
  const ids = { session: '', csrf: '' }
  const device = await startDevice(async (request, response) => {
    await readBody(request)
    if (request.url === '/login') {
      Object.assign(ids, { session: mint(), csrf: mint() })
      return answer(response, 200, {
        'Set-Cookie': [`SESSION=${ids.session}; HttpOnly; Path=/`, `XSRF-TOKEN=${ids.csrf}; Path=/`],
      })
    }
    const cookies = `SESSION=${ids.session}; XSRF-TOKEN=${ids.csrf}`
    if (request.headers.cookie?.startsWith(cookies) !== true) return answer(response, 401)
    if (request.method !== 'GET' && request.headers['x-xsrf-token'] !== ids.csrf) return answer(response, 403)
    return answer(response, 200, { 'X-XSRF-TOKEN': ids.csrf }, 'from the device')
  })
  const password = 'device-secret'
  return {
    ...{ device, ids, password },
    auth: {
      kind: 'session',
      user: USER,
      session: {
        login: { path: '/login', json: { data: ['$user', '$password'] } },
        token: { cookie: 'XSRF-TOKEN' },
        send: { header: 'X-XSRF-TOKEN' },
      },
    },
  }
}

/** A controller with JSON-RPC at one path, as Siemens S7-1500: every answer is 200, and an error is a member of its JSON. */
export interface RpcDevice extends Pick<SessionDevice, 'device' | 'password' | 'logins'> {
  /** The valid token. */
  token: string
  /** Sends the answer to a request, by default at once and with its length. `text`: the JSON of it. */
  send: (response: ServerResponse, text: string) => void
  /** The JSON of the answer to a request with a valid token. */
  result: string
}

export async function startRpcDevice(): Promise<RpcDevice> {
  const device = await startDevice(async (request, response) => {
    const body = (await readBody(request)).toString()
    response.setHeader('Content-Type', 'application/json; charset=utf-8')
    const isLogin = body.includes('Api.Login')
    if (isLogin) rpc.logins.push(body)
    const { user, password } = isLogin ? JSON.parse(body).params : {}
    if (isLogin && user === USER && password === rpc.password) {
      rpc.token = randomBytes(8).toString('hex')
      return rpc.send(response, JSON.stringify({ result: { token: rpc.token }, id: 1 }))
    }
    if (isLogin) return rpc.send(response, '{"error":{"code":100,"message":"Login failed"},"id":1}')
    if (rpc.token !== '' && request.headers['x-auth-token'] === rpc.token)
      return rpc.send(response, rpc.result)
    return rpc.send(response, '{"error":{"code":2,"message":"Permission denied"},"id":1}')
  })
  const rpc: RpcDevice = {
    ...{ device, password: 'device-secret', logins: [], token: '' },
    send: (response, text) => response.setHeader('Content-Length', Buffer.byteLength(text)).end(text),
    result: '{"result":"from the device"}',
  }
  return rpc
}

export const rpcAuth = {
  kind: 'session',
  user: USER,
  session: {
    login: {
      path: '/api/jsonrpc',
      json: { method: 'Api.Login', params: { user: '$user', password: '$password' } },
    },
    token: { json: '/result/token' },
    send: { header: 'X-Auth-Token' },
    expired: [401, { json: '/error/code', value: 2 }],
  },
}
