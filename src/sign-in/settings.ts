import { readFile } from 'node:fs/promises'
import type { UpstreamAuthConfig } from '../config/auth-fields.ts'
import type { Connections } from '../device/connections.ts'
import type { Fields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import { reasonOf } from '../system/node-permission.ts'
import { SetupError } from '../system/setup-error.ts'
import { createBasicScheme } from './basic-scheme.ts'
import { createAsk } from './device-request.ts'
import { createDigestScheme } from './digest-scheme.ts'
import { createFormScheme } from './form-scheme.ts'
import type { Ask, Scheme } from './scheme.ts'
import { createSignIn, type SignIn, type SignInEvents } from './sign-in.ts'

export interface SignInSetup {
  /** Where `auth` stands in the configuration, for messages. */
  readonly key: string
  readonly connections: Connections
  /** What every request to the device carries. */
  readonly request: () => { readonly host: string | undefined; readonly added: Fields }
  readonly clock: Clock
  readonly events: SignInEvents
}

/** Signing in as configured; `undefined` for `off`. Fails with `SetupError` if the password file is no good. */
export async function openSignIn(
  auth: UpstreamAuthConfig,
  { key, connections, request, clock, events }: SignInSetup,
): Promise<SignIn | undefined> {
  if (auth === 'off') return undefined
  const [kind, settings] =
    'basic' in auth
      ? (['basic', auth.basic] as const)
      : 'digest' in auth
        ? (['digest', auth.digest] as const)
        : (['form', auth.form] as const)
  const file = settings.password?.file
  const readPassword =
    file === undefined ? undefined : () => readPasswordFile(`${key}.${kind}.password.file`, file)
  await readPassword?.()
  const ask = createAsk(connections, () => {
    const { host, added } = request()
    return host === undefined ? added : ['Host', host, ...added]
  })
  const scheme = schemeFor(auth, ask, clock)
  return createSignIn({ scheme, readPassword, clock, events })
}

function schemeFor(auth: Exclude<UpstreamAuthConfig, 'off'>, ask: Ask, clock: Clock): Scheme {
  if ('basic' in auth) return createBasicScheme(auth.basic, ask)
  if ('digest' in auth) return createDigestScheme(auth.digest, ask)
  const { user, userField, passwordField, fields, path, loginPage, sessionCookie, success, checkPath } =
    auth.form
  const named = fields.map((pair) => {
    const equals = pair.indexOf('=')
    return [pair.slice(0, equals), pair.slice(equals + 1)] as const
  })
  return createFormScheme(
    {
      fields: user === undefined ? named : [...named, [userField, user]],
      passwordField,
      path,
      loginPage: loginPage ?? path,
      sessionCookie,
      success,
      checkPath,
    },
    ask,
    clock,
  )
}

/** One line of text, without its end; the message never quotes it. */
async function readPasswordFile(key: string, path: string): Promise<string> {
  const bytes = await readFile(path).catch((error: Error) => {
    throw new SetupError(`${key}: cannot read ${path}: ${reasonOf(error)}`)
  })
  const text = bytes
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .replace(/\r?\n$/, '')
  if (text === '' || [...text].some((each) => each < ' ' || each === '\x7f' || each === '\ufffd')) {
    throw new SetupError(`${key}: ${path} must hold one line of text in UTF-8`)
  }
  return text
}
