import { connect } from '../support/client.ts'
import { BrokenTransfer, type Connection, type Request, type Response } from '../support/message.ts'
import { encodeForm, type Tokens } from '../support/sidecar.ts'
import { LIMITS, type SoakContext } from './context.ts'
import type { Random } from './random.ts'

/** A client with its own address and login. */
export interface Visitor {
  readonly context: SoakContext
  readonly random: Random
  readonly transport: 'tls' | 'h2'
  readonly address: string
  readonly tokens: Tokens | undefined
  /** The connection; opens a new one if the last is closed. */
  connection(): Promise<Connection>
  /**
   * Sends a request and checks what the contract promises of every response. Resolves with undefined if the response is
   * missing or different because of a disturbance.
   */
  ask(operation: string, request: Ask): Promise<Response | undefined>
  logIn(): Promise<void>
  /** Forgets the login. */
  logOut(): void
  /** Whether the tokens were issued for an earlier password. */
  readonly outdated: boolean
  leave(): void
}

interface Ask extends Request {
  /** `login`: the access token of the visitor. */
  readonly token?: 'login' | string | undefined
  /** The response must be a broken transfer. */
  readonly breaks?: boolean
}

interface Window {
  reset: number
  remaining: number
}

let visitors = 0

export function createVisitor(context: SoakContext, random: Random): Visitor {
  const { served, disturbanceLog, ledger, now } = context
  visitors += 1
  const address = `127.${8 + ((visitors >> 16) & 0x3f)}.${(visitors >> 8) & 0xff}.${visitors & 0xff}`
  const transport = random.pick<'tls' | 'h2'>(['tls', 'h2'])
  const windows = new Map<string, Window>()
  let current: Connection | undefined
  let tokens: Tokens | undefined
  let grantedUnder = 0

  async function connection(): Promise<Connection> {
    if (current !== undefined) return current
    const opened = await connect({ transport, url: served.url, from: address })
    current = opened
    void opened.closed.then(() => {
      if (current === opened) current = undefined
    })
    return opened
  }

  /** C16 and C14: the rate-limit fields are present and count down by one for each request of this address. */
  function limitFault(endpoint: 'api' | 'oauth', response: Response): string | undefined {
    const [limit, remaining, reset] = ['Limit', 'Remaining', 'Reset'].map((name) =>
      response.values(`X-RateLimit-${name}`).join(),
    )
    if (limit !== String(LIMITS[endpoint]) || !/^\d+$/.test(remaining ?? '') || !/^\d+$/.test(reset ?? '')) {
      return `X-RateLimit ${limit} ${remaining} ${reset}`
    }
    const known = windows.get(endpoint)
    windows.set(endpoint, { reset: Number(reset), remaining: Number(remaining) })
    // A request that broke off has counted too, so the count may drop by more than one.
    const fresh = known === undefined || Number(reset) > known.reset + 1
    const most = fresh ? LIMITS[endpoint] - 1 : Math.max(0, known.remaining - 1)
    return Number(remaining) <= most ? undefined : `${remaining} remaining instead of ${most}`
  }

  /** The disturbance that explains an unexpected response; undefined if there is none. */
  function excuse(
    response: Response | BrokenTransfer,
    from: number,
    token: Ask['token'],
  ): string | undefined {
    const ran = [from, now()] as const
    const broken = response instanceof BrokenTransfer
    if (disturbanceLog.affected('device', ...ran)) {
      if (broken) return 'broken by the device'
      if (response.status === 500 && response.values('proxy-status').length === 1) return 'device down'
    }
    const revokes = disturbanceLog.affected('password', ...ran)
    // Also without a token: the response before it on the connection may have ended with its grant.
    if (revokes && broken) return 'broken by the password'
    if (token === undefined) return undefined
    if (revokes && !broken && response.status === 401) return 'revoked'
    return !broken && token === 'login' && visitor.outdated && response.status === 401 ? 'revoked' : undefined
  }

  const visitor: Visitor = {
    context,
    random,
    transport,
    address,
    get tokens() {
      return tokens
    },
    connection,
    async ask(operation, { token, breaks = false, ...request }) {
      const shown = token === 'login' ? tokens?.access_token : token
      const fields = [
        ...(shown === undefined ? [] : ['Authorization', `Bearer ${shown}`]),
        ...(request.fields ?? []),
      ]
      const on = await connection()
      const from = now()
      const response = await on
        .send({ signal: AbortSignal.timeout(20_000), ...request, fields })
        .catch((error: unknown) => (error instanceof BrokenTransfer ? error : Promise.reject(error)))
      if (response instanceof BrokenTransfer) {
        if (transport === 'tls') on.close()
        if (current === on && transport === 'tls') current = undefined
        const why = breaks ? 'broken' : excuse(response, from, token)
        if (why === undefined) ledger.fail(operation, `${transport} ${response.message}`)
        else ledger.count(operation, why)
        return undefined
      }
      if (response.values('connection').includes('close') && current === on) current = undefined
      const fault = limitFault(request.path?.startsWith('/oauth/') ? 'oauth' : 'api', response)
      if (fault !== undefined) ledger.fail(operation, fault)
      const why = excuse(response, from, token)
      if (why !== undefined) {
        ledger.count(operation, why)
        if (why === 'revoked') visitor.logOut()
        return undefined
      }
      const outlives = token === 'login' && grantedUnder >= 0 && visitor.outdated && response.status !== 401
      if (outlives && !disturbanceLog.affected('password', from, now()))
        ledger.fail(operation, `a token is valid after a password change: ${response.status}`)
      if (breaks)
        ledger.fail(
          operation,
          `looks complete although the device cut it: ${response.status} ${response.body.length} bytes`,
        )
      return response
    },
    async logIn() {
      const from = now()
      const { changes, now: password } = context.password
      const response = await visitor.ask('log in', {
        method: 'POST',
        path: '/oauth/token',
        fields: ['Content-Type', 'application/x-www-form-urlencoded'],
        body: encodeForm({ grant_type: 'password', password }),
      })
      if (response === undefined) return
      const raced = disturbanceLog.affected('password', from, now())
      if (response.status === 200) {
        // A token that was issued during a password change may belong to either password.
        grantedUnder = raced ? -1 : changes
        tokens = response.json() as unknown as Tokens // the shape is checked below
        if (!/^[\w-]{43}$/.test(tokens.access_token)) ledger.fail('log in', response.text)
        else ledger.count('log in', '200')
      } else if (raced && response.status === 400) ledger.count('log in', 'the password was just changed')
      else ledger.fail('log in', `${response.status} ${response.text}`)
    },
    logOut() {
      tokens = undefined
    },
    get outdated() {
      return grantedUnder !== context.password.changes
    },
    leave() {
      current?.close()
    },
  }
  return visitor
}
