import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { UpstreamAuthConfig } from '../../src/config/auth-fields.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createConnections } from '../../src/device/connections.ts'
import type { OwnResponse } from '../../src/device/own-request.ts'
import { openSignIn } from '../../src/sign-in/settings.ts'
import type { SentCredentials, SignIn } from '../../src/sign-in/sign-in.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { send } from '../support/client.ts'
import { type MovableClock, movableClock } from '../support/clock.ts'

export interface Signed {
  readonly signIn: SignIn
  readonly clock: MovableClock
  /** Everything that was told, in order. */
  readonly told: readonly string[]
  readonly passwordFile: string
  /** One request with the credentials of now, and what the device says to it. Nothing is renewed. */
  request(line?: {
    readonly method?: string
    readonly target?: string
    readonly mark?: string | undefined
  }): Promise<OwnResponse & { shown: SentCredentials | undefined }>
}

export interface SignedOptions {
  /** Below `upstream.auth`, keys as in the file; the password file is added. */
  readonly auth: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** `null`: nothing but what is adopted. */
  readonly password: string | null
  readonly url: string
}

/** Signing in as configured, without the rest of the sidecar. */
export async function signedIn({ auth, password, url }: SignedOptions): Promise<Signed> {
  const passwordFile = join(temporaryDirectory(), 'device-password')
  writeFileSync(passwordFile, `${password ?? 'unused'}\n`)
  const [kind = '', settings = {}] = Object.entries(auth)[0] ?? []
  const tree = {
    upstream: { url, auth: { [kind]: { ...settings, password: { file: passwordFile } } } },
    password: { file: passwordFile },
  }
  const config = loadConfig({ file: { path: 'x', text: JSON.stringify(tree) }, env: {}, sets: [] })
  const clock = movableClock()
  const connections = createConnections(
    { origin: url, socketPath: undefined, ca: undefined, insecure: false, reuse: 'shared', parser: 'strict' },
    { connect: 2000, response: 2000, idle: 2000 },
    clock,
  )
  closeLater(() => connections.close())
  const told: string[] = []
  const signIn = await openSignIn(
    password === null ? withoutPassword(config.upstream.auth) : config.upstream.auth,
    {
      key: 'upstream.auth',
      connections,
      clock,
      request: () => ({ host: 'device.test', added: ['X-Extra', 'yes'] }),
      events: {
        signedIn: () => told.push('signed in'),
        refused: (pause) => told.push(`refused ${pause}`),
        unusable: (reason) => told.push(`unusable ${reason}`),
      },
    },
  )
  if (signIn === undefined) throw new Error('upstream.auth is off')
  return {
    signIn,
    clock,
    told,
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
  if ('basic' in auth) return { basic: bare(auth.basic) }
  return 'digest' in auth ? { digest: bare(auth.digest) } : { form: bare(auth.form) }
}

function bare<T extends { readonly password?: unknown }>(settings: T): Omit<T, 'password'> {
  const { password: _, ...rest } = settings
  return rest
}
