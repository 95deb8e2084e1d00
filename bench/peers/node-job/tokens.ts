import { hash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { type Answer, JSON_TYPE, MALFORMED, refusal } from './answers.ts'
import { parametersIn } from './requests.ts'

/** The variable with the digest of the password. */
export const PASSWORD_DIGEST = 'PASSWORD_DIGEST'

const derive = promisify<string, string, number, Buffer>(scrypt)

/** The same at each start, so tokens outlive it. */
const SALT = 'postern-bench'

export async function passwordDigest(password: string): Promise<string> {
  return (await derive(password, SALT, 32)).toString('hex')
}

/** Seconds. */
const LIFETIMES = { access: 3_600, refresh: 604_800 } as const

type Kind = keyof typeof LIFETIMES

const MOST_TOKENS = 20_000

const SWEPT_EVERY = 60_000

/** The tokens of the documented API by their digests, with a journal that outlives the process. */
export class Tokens {
  readonly #expiries = { access: new Map<string, number>(), refresh: new Map<string, number>() }
  readonly #journal: string
  readonly #passwordDigest = process.env[PASSWORD_DIGEST] ?? ''

  /** @param state the folder of the journal */
  constructor(state: string) {
    this.#journal = join(state, 'tokens')
    this.#restore()
    setInterval(() => this.#sweep(), SWEPT_EVERY).unref()
  }

  /** The first line tells the password: the tokens of another one are void. */
  #restore(): void {
    const header = hash('sha256', this.#passwordDigest)
    const [first, ...lines] = existsSync(this.#journal) ? readFileSync(this.#journal, 'utf8').split('\n') : []
    const live = lines.filter((line) => first === header && Number(line.split(' ')[2]) > now())
    for (const line of live) {
      const [kind, digest = '', expires] = line.split(' ')
      this.#expiries[kind === 'access' ? 'access' : 'refresh'].set(digest, Number(expires))
    }
    writeFileSync(this.#journal, [header, ...live, ''].join('\n'), { mode: 0o600 })
  }

  #sweep(): void {
    for (const expiries of Object.values(this.#expiries))
      for (const [digest, expires] of expiries) if (expires <= now()) expiries.delete(digest)
  }

  isLive(kind: Kind, token: string): boolean {
    return (this.#expiries[kind].get(hash('sha256', token, 'base64url')) ?? 0) > now()
  }

  #mint(kind: Kind): string {
    const token = randomBytes(32).toString('base64url')
    const [digest, expires] = [hash('sha256', token, 'base64url'), now() + LIFETIMES[kind]]
    this.#expiries[kind].set(digest, expires)
    appendFileSync(this.#journal, `${kind} ${digest} ${expires}\n`)
    return token
  }

  /** Answers the body of a POST to `/oauth/token`. */
  async grant(contentType: string | undefined, text: string): Promise<Answer> {
    const form = parametersIn(contentType, text)
    const type = form?.get('grant_type')
    if (form === undefined || type === undefined) return MALFORMED
    if (type !== 'password' && type !== 'refresh_token')
      return refusal(400, 'unsupported_grant_type', 'The grant type must be password or refresh_token.')
    const credential = form.get(type)
    if (credential === undefined) return MALFORMED
    if (Object.values(this.#expiries).some(({ size }) => size >= MOST_TOKENS))
      return refusal(500, 'server_error', 'There is no room for more tokens.')
    const isLogin = type === 'password'
    const isRight = isLogin ? await this.#isPassword(credential) : this.isLive('refresh', credential)
    if (!isRight) return refusal(400, 'invalid_grant', 'The password or refresh token is not valid.')
    const answer = {
      access_token: this.#mint('access'),
      token_type: 'Bearer',
      expires_in: LIFETIMES.access,
      refresh_token: isLogin ? this.#mint('refresh') : credential,
    }
    const headers = { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store', Pragma: 'no-cache' }
    return { status: 200, headers, body: JSON.stringify(answer) }
  }

  async #isPassword(password: string): Promise<boolean> {
    const [given, stored] = [await passwordDigest(password), this.#passwordDigest]
    return timingSafeEqual(Buffer.from(given), Buffer.from(stored))
  }
}

/** Unix time in seconds. */
function now(): number {
  return Math.floor(Date.now() / 1000)
}
