import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from './certificate.ts'
import type { Response } from './message.ts'
import type { Tokens, YamlPart } from './sidecar.ts'

/** The `allow` of the example on the pages. */
export const OF_MONITOR = [{ methods: ['GET', 'HEAD'], paths: ['/status', '/api/sensors/'] }]

/** Several passwords, each in a file of its own. */
export interface Names {
  /** For the configuration, in place of `password`. */
  readonly config: YamlPart & { readonly passwords: readonly YamlPart[] }
  readonly files: Readonly<Record<string, string>>
  /** Replaces the content of a name's file. */
  set(name: string, line: string): void
}

/** The password of a name in these tests. */
export const passwordOf = (name: string): string => `the password of ${name}`

/** @param allows what each name may do; undefined: everything */
export function makeNames(allows: Readonly<Record<string, unknown>>): Names {
  const directory = temporaryDirectory()
  const files = Object.fromEntries(Object.keys(allows).map((name) => [name, join(directory, name)]))
  const set = (name: string, line: string): void =>
    writeFileSync(files[name] ?? '', `${line}\n`, { mode: 0o600 })
  for (const name of Object.keys(allows)) set(name, passwordOf(name))
  const passwords = Object.entries(allows).map(([name, allow]) => ({ name, file: files[name], allow }))
  return { config: { password: undefined, passwords }, files, set }
}

/** A configuration in which the `allow` of some names is on trial. */
export function onTrial({ config }: Names, ...trials: readonly string[]): Names['config'] {
  const passwords = config.passwords.map((entry) =>
    trials.some((name) => name === entry.name) ? { ...entry, enforce: false } : entry,
  )
  return { ...config, passwords }
}

/** The tokens for a name's password; fails unless the status is 200. */
export async function logInAs(
  sidecar: { postToken(form: Readonly<Record<string, string>>): Promise<Response> },
  name: string,
  password: string = passwordOf(name),
): Promise<Tokens> {
  const response = await sidecar.postToken({ grant_type: 'password', password })
  if (response.status !== 200) throw new Error(`no tokens: ${response.status} ${response.text}`)
  return response.json() as unknown as Tokens // the tests of C4 check the members
}

/** The password of the live page in tests. */
export const PAGE_PASSWORD = 'a page & its password'

/** A file with it, for `admin.password_file`. */
export function pagePasswordFile(): string {
  const file = join(temporaryDirectory(), 'page-password')
  writeFileSync(file, `${PAGE_PASSWORD}\n`, { mode: 0o600 })
  return file
}

/** Signs in to the live page, and resolves with the value for `Cookie`. */
export async function pageCookie(adminUrl: string): Promise<string> {
  const { headers } = await fetch(`${adminUrl}/page/login`, {
    method: 'POST',
    headers: { Origin: adminUrl },
    body: new URLSearchParams({ password: PAGE_PASSWORD }),
    redirect: 'manual',
  })
  return headers.get('set-cookie')?.split(';')[0] ?? ''
}
