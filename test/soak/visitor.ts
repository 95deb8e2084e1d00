import { connect } from '../support/client.ts'
import { BrokenTransfer, type Connection, type Request, type Response } from '../support/message.ts'
import { encodeForm, type Tokens } from '../support/sidecar.ts'
import { type House, LIMITS } from './house.ts'
import type { Random } from './random.ts'

/** A client with an address and a login of its own, for a while. */
export interface Visitor {
  readonly house: House
  readonly random: Random
  readonly transport: 'tls' | 'h2'
  readonly address: string
  readonly tokens: Tokens | undefined
  /** The connection, a new one where the last has gone. */
  connection(): Promise<Connection>
  /**
   * Asks, and holds the answer to what is promised of every answer. Gives undefined where a disturbance explains that
   * there is none, or another one.
   */
  ask(operation: string, request: Ask): Promise<Response | undefined>
  logIn(): Promise<void>
  /** Forgets the login. */
  logOut(): void
  /** Whether the tokens are older than the password. */
  readonly outdated: boolean
  leave(): void
}

interface Ask extends Request {
  /** `login`: the access token of the visitor. */
  readonly token?: 'login' | string | undefined
  /** A broken transfer is what has to come. */
  readonly breaks?: boolean
}

interface Window {
  reset: number
  remaining: number
}

let visitors = 0

export function createVisitor(house: House, random: Random): Visitor {
  const { served, weather, ledger, now } = house
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

  /** C16 and C14: the fields are there, and count down by one for each request of this address. */
  function limitFault(endpoint: 'api' | 'oauth', answer: Response): string | undefined {
    const [limit, remaining, reset] = ['Limit', 'Remaining', 'Reset'].map((name) =>
      answer.values(`X-RateLimit-${name}`).join(),
    )
    if (limit !== String(LIMITS[endpoint]) || !/^\d+$/.test(remaining ?? '') || !/^\d+$/.test(reset ?? '')) {
      return `X-RateLimit ${limit} ${remaining} ${reset}`
    }
    const known = windows.get(endpoint)
    windows.set(endpoint, { reset: Number(reset), remaining: Number(remaining) })
    // A request that broke off has counted too, so it may be less than one less.
    const fresh = known === undefined || Number(reset) > known.reset + 1
    const most = fresh ? LIMITS[endpoint] - 1 : Math.max(0, known.remaining - 1)
    return Number(remaining) <= most ? undefined : `${remaining} remaining instead of ${most}`
  }

  /** Why an answer may differ from what was expected; undefined where nothing excuses it. */
  function excuse(answer: Response | BrokenTransfer, from: number, token: Ask['token']): string | undefined {
    const ran = [from, now()] as const
    const broken = answer instanceof BrokenTransfer
    if (weather.was('device', ...ran)) {
      if (broken) return 'broken by the device'
      if (answer.status === 500 && answer.values('proxy-status').length === 1) return 'device down'
    }
    if (token === undefined) return undefined
    if (weather.was('password', ...ran)) {
      if (broken) return 'broken by the password'
      if (answer.status === 401) return 'revoked'
    }
    return !broken && token === 'login' && visitor.outdated && answer.status === 401 ? 'revoked' : undefined
  }

  const visitor: Visitor = {
    house,
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
      const answer = await on
        .send({ timeout: 20_000, ...request, fields })
        .catch((error: unknown) => (error instanceof BrokenTransfer ? error : Promise.reject(error)))
      if (answer instanceof BrokenTransfer) {
        if (transport === 'tls') on.close()
        if (current === on && transport === 'tls') current = undefined
        const why = breaks ? 'broken' : excuse(answer, from, token)
        if (why === undefined) ledger.fail(operation, `${transport} ${answer.message}`)
        else ledger.count(operation, why)
        return undefined
      }
      if (answer.values('connection').includes('close') && current === on) current = undefined
      const fault = limitFault(request.path?.startsWith('/oauth/') ? 'oauth' : 'api', answer)
      if (fault !== undefined) ledger.fail(operation, fault)
      const why = excuse(answer, from, token)
      if (why !== undefined) {
        ledger.count(operation, why)
        if (why === 'revoked') visitor.logOut()
        return undefined
      }
      const outlives = token === 'login' && grantedUnder >= 0 && visitor.outdated && answer.status !== 401
      if (outlives && !weather.was('password', from, now()))
        ledger.fail(operation, `a token outlives its password: ${answer.status}`)
      if (breaks)
        ledger.fail(
          operation,
          `whole, though the device had cut it: ${answer.status} ${answer.body.length} bytes`,
        )
      return answer
    },
    async logIn() {
      const from = now()
      const { changes, now: password } = house.password
      const answer = await visitor.ask('log in', {
        method: 'POST',
        path: '/oauth/token',
        fields: ['Content-Type', 'application/x-www-form-urlencoded'],
        body: encodeForm({ grant_type: 'password', password }),
      })
      if (answer === undefined) return
      const raced = weather.was('password', from, now())
      if (answer.status === 200) {
        // Given while the password changed, it may belong to either.
        grantedUnder = raced ? -1 : changes
        tokens = answer.json() as unknown as Tokens // its shape is asked for below
        if (!/^[\w-]{43}$/.test(tokens.access_token)) ledger.fail('log in', answer.text)
        else ledger.count('log in', '200')
      } else if (raced && answer.status === 400) ledger.count('log in', 'the password was just changed')
      else ledger.fail('log in', `${answer.status} ${answer.text}`)
    },
    logOut() {
      tokens = undefined
    },
    get outdated() {
      return grantedUnder !== house.password.changes
    },
    leave() {
      current?.close()
    },
  }
  return visitor
}
