import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { UpstreamAuthConfig } from '../../src/config/auth-fields.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createConnections } from '../../src/device/connections.ts'
import type { OwnResponse } from '../../src/device/own-request.ts'
import { openSignIn } from '../../src/sign-in/open-sign-in.ts'
import type { SentCredentials, SignIn } from '../../src/sign-in/sign-in.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { send } from '../support/client.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'

export interface Signed {
  readonly signIn: SignIn
  readonly clock: MovableClock
  /** Every event, in order. */
  readonly events: readonly string[]
  readonly passwordFile: string
  /** Sends one request with the current credentials and returns the response. It does not renew them. */
  request(line?: {
    readonly method?: string
    readonly target?: string
    readonly mark?: string | undefined
  }): Promise<OwnResponse & { shown: SentCredentials | undefined }>
}

export interface SignedOptions {
  /** The content of `upstream.auth` with the keys of the file. The password file is added. */
  readonly auth: object
  /** `null`: without a password file, so only an adopted password is used. */
  readonly password: string | null
  readonly url: string
}

/** Opens the sign-in as configured, without the rest of the sidecar. */
export async function signedIn({ auth, password, url }: SignedOptions): Promise<Signed> {
  const passwordFile = join(temporaryDirectory(), 'device-password')
  writeFileSync(passwordFile, `${password ?? 'unused'}\n`)
  const tree = {
    upstream: { url, auth: { ...auth, password: { file: passwordFile } } },
    password: { file: passwordFile },
  }
  const config = loadConfig({ file: { path: 'x', text: JSON.stringify(tree) }, env: {}, sets: [] })
  const clock = stillClock()
  const connections = createConnections(
    { origin: url, socketPath: undefined, reuse: 'shared', parser: 'strict' },
    // So long that a busy machine is not taken for a device that does not respond.
    { connect: 5_000, response: 60_000, idle: 60_000 },
    clock,
  )
  closeLater(() => connections.close())
  const events: string[] = []
  const signIn = await openSignIn(
    password === null ? withoutPassword(config.upstream.auth) : config.upstream.auth,
    {
      key: 'upstream.auth',
      connections,
      origin: url,
      clock,
      request: () => ({ host: 'device.test', names: [], added: ['X-Extra', 'yes'] }),
      events: {
        signedIn: () => events.push('signed in'),
        refused: (pause) => events.push(`refused ${pause}`),
        unusable: (reason) => events.push(`unusable ${reason}`),
        changing: (key) => events.push(`changing ${key}`),
        notSignedOut: (reason) => events.push(`not signed out ${reason}`),
      },
    },
  )
  if (signIn === undefined) throw new Error('upstream.auth is off')
  return {
    signIn,
    clock,
    events,
    passwordFile,
    async request({ method = 'GET', target = '/', mark } = {}) {
      const shown = signIn.credentialsFor({ method, target }, mark)
      const response = await send({
        transport: 'http1',
        url,
        method,
        path: target,
        fields: [...(shown?.fields ?? [])],
      })
      return { status: response.status, fields: response.fields, shown }
    },
  }
}

function withoutPassword(auth: UpstreamAuthConfig): UpstreamAuthConfig {
  if (auth === 'off') return auth
  const { password: _, ...rest } = auth
  return rest
}
