import { basename } from 'node:path'
import { expect } from 'vitest'
import { parse } from 'yaml'
import { VERSION } from '../../src/version.ts'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { type Former, formerConfigurations, formerFile } from './former.ts'
import { PASSWORDS, type Upgrade } from './upgrading.ts'

/** Two tokens each: 10,000 tokens. */
const LOGINS = '5000'

/** `postern status` of 27b4877 prints nothing into a pipe when there are so many. */
const COUNT = "curl -sS http://127.0.0.1:9464/metrics | grep '^postern_tokens{'"
const ALL = 'postern_tokens{kind="access"} 5000\npostern_tokens{kind="refresh"} 5000\n'

interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly items?: SchemaNode
  readonly additionalProperties?: SchemaNode | boolean
  readonly anyOf?: readonly SchemaNode[]
  readonly oneOf?: readonly SchemaNode[]
}

/** Every key of a schema, without what tells the services, the entries and the names apart. */
function keysOfSchema(node: SchemaNode, path: readonly string[] = []): readonly string[] {
  const deeper = (next: SchemaNode | boolean | undefined, at: readonly string[]) =>
    typeof next === 'object' ? keysOfSchema(next, at) : []
  return [
    ...Object.entries(node.properties ?? {}).flatMap(([key, each]) => [
      [...path, key].join('.'),
      ...keysOfSchema(each, [...path, key]),
    ]),
    ...deeper(node.items, path),
    // The keys of a service of `routes` are those of `upstream`.
    ...deeper(node.additionalProperties, path.at(-1) === 'routes' ? path.slice(0, -1) : path),
    ...[...(node.anyOf ?? []), ...(node.oneOf ?? [])].flatMap((each) => keysOfSchema(each, path)),
  ]
}

/** Every key of a configuration, in the same form. */
function keysOfConfiguration(value: unknown, path: readonly string[] = []): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((each) => keysOfConfiguration(each, path))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, each]) => {
    const here = [...path, key]
    // Their keys are names.
    const below = key === 'routes' || key === 'headers' ? Object.values(each) : each
    return [here.join('.'), ...keysOfConfiguration(below, key === 'routes' ? path : here)]
  })
}

/** The configurations of `former/` have every key of the commit, and its own `check` takes them. */
export async function expectEveryKey(commit: Former, { type }: Upgrade): Promise<void> {
  const known = new Set(keysOfSchema(JSON.parse(await formerFile(commit, 'deploy/postern.schema.json'))))
  const configurations = formerConfigurations(commit)
  const used = new Set([...configurations.values()].flatMap((each) => keysOfConfiguration(parse(each))))
  expect(known.size).toBeGreaterThan(80)
  expect([...known].filter((key) => !used.has(key))).toEqual([])
  for (const name of configurations.keys())
    expect(await check(type, name)).not.toMatch(/^postern check:|^FAILED +(?:configuration|password)/m)
}

const check = (type: Upgrade['type'], name: string): Promise<string> =>
  type(`runuser -u postern -- postern check --quiet --config /etc/postern/${name}.yaml 2>&1 || [ $? -eq 1 ]`)

/** The present `check` refuses no key, and has the line to write for each in its former spelling. */
export async function expectAllRead(commit: Former, { type }: Upgrade): Promise<void> {
  for (const [name, content] of formerConfigurations(commit)) {
    const found = await check(type, name)
    expect(found).not.toMatch(/^postern check:|^FAILED +(?:configuration|password)/m)
    const former = content.match(/^ +auth:/gm) ?? []
    const lines = found.match(/write auth: \{kind: /g) ?? []
    expect([name, lines.length]).toEqual([name, former.length])
  }
}

const CHECK = shellBlock('docs/sizing.md', 'dpkg-deb --extract')

/**
 * Before the upgrade the check of the new version says what behaves differently, by the commands of the page; after it, that of the
 * package.
 */
export async function expectChanges({ commit, type }: Upgrade): Promise<void> {
  const before = await type(replaceIn(CHECK, './postern_1.0.0_amd64.deb', `./postern_${VERSION}_*.deb`))
  const changed = [...before.matchAll(/^WARNING (\S+): .*\(since 1\.0\.0\)$/gm)].map(([, key]) => key)
  expect(changed).toContain('listen.tls')
  expect(changed).toContain('upstream.routes./camera/.max_in_flight')
  // What the configuration sets does not change.
  expect(changed).not.toContain('upstream.max_in_flight')
  expect(changed.includes('browser.idle')).toBe(commit === 'e4e1b94c')
}

/** Logs clients in; a tenth of them will poll. */
export async function logInAll({ beside, type }: Upgrade): Promise<void> {
  expect(await beside('log-in', 'all', PASSWORDS.file, LOGINS)).toBe(Number(LOGINS))
  await beside('choose', 'all', 'some')
  expect(await type(COUNT)).toBe(ALL)
}

const NAVIGATE =
  "curl -ks -b cookies https://localhost:8443/ -H 'Accept: text/html' -H 'Sec-Fetch-Mode: navigate' -H 'Sec-Fetch-Site: none'"
const BROWSER_LOGIN =
  "curl -ks -c cookies -o /dev/null 'https://localhost:8443/oauth/login?to=%2F' -H 'Origin: https://localhost:8443' --data-urlencode password@-"

/** Logs a browser in, and opens the first page of the device. Its session is in memory: before the login it gets the login page. */
export async function logInWithBrowser({ type }: Upgrade): Promise<void> {
  expect(await type(`touch cookies; ${NAVIGATE}`)).toContain('action="/oauth/login?to=%2F"')
  await type(BROWSER_LOGIN, PASSWORDS.file)
  expect(await type(NAVIGATE)).toBe('device\n')
}

/** Upgrades while clients poll: no token is lost, and the certificate stays. */
export async function upgradeUnderPolls(upgrade: Upgrade): Promise<void> {
  const { beside, poll, install, type } = upgrade
  const certificate = await type('cat /var/lib/postern/tls/cert.pem')
  const tokens = await type(COUNT)
  const stop = await poll('some')
  const installed = await install('present')
  const [, check = ''] = /What behaves differently: (.*)$/m.exec(installed) ?? []
  expect(await type(`${check} || [ $? -eq 1 ]`)).toMatch(/^WARNING listen\.tls: .*\(since 1\.0\.0\)$/m)
  expect(await type('postern --version; systemctl is-active postern')).toBe(`${VERSION}\nactive\n`)
  const before = await beside('use', 'some')
  const { statuses } = await stop()
  // Connections fail while one process restarts; no token is refused.
  expect(Object.keys(statuses)).toEqual(['200'])
  expect(before).toEqual({ 200: 500 })
  expect(await type(COUNT)).toBe(tokens)
  expect(await type('cat /var/lib/postern/tls/cert.pem')).toBe(certificate)
  expect(await beside('refresh', 'some')).toBe(500)
  expect(await beside('use', 'some')).toEqual({ 200: 500 })
}

const TAKE_BACK = shellBlock('docs/sizing.md', 'tokens.db.back')
const SET_ASIDE = /^\{.*"fault":"newer","path":"(\/var\/lib\/postern\/tokens\.db\.newer-[^"]+)".*$/gm

/** Goes back: one line says that the token file is set aside, and everyone logs in again. Then forward: the file is found. */
export async function goBackAndForward({ beside, install, log, type }: Upgrade): Promise<void> {
  await install('former')
  expect(await type('postern --version; systemctl is-active postern')).toBe('0.1.0\nactive\n')
  expect(await beside('use', 'some')).toEqual({ 401: 500 })
  const lines = [...(await log('postern')).matchAll(SET_ASIDE)]
  expect(lines).toHaveLength(1)
  const [line = '', path = ''] = lines[0] ?? []
  expect(line).toContain('"msg":"token file: unusable, set aside; starting empty"')
  const size = Number(await type(`stat -c %s ${path}`))
  expect(size).toBeGreaterThan(500_000)
  expect(await beside('log-in', 'meanwhile', PASSWORDS.file, '50')).toBe(50)

  await install('present')
  expect(await beside('use', 'meanwhile')).toEqual({ 200: 50 })
  // What was to be revoked meanwhile is unknown.
  expect(await beside('use', 'some')).toEqual({ 401: 500 })
  const found = /"path":"([^"]+)","remedy":"([^"]+)".*an earlier version has set one aside/.exec(
    await log('postern'),
  )
  expect(found?.[1]).toBe(path)
  const commands = replaceIn(TAKE_BACK, /tokens\.db\.newer-\S+/.exec(TAKE_BACK)?.[0] ?? '', basename(path))
  expect(commands).toContain(`${found?.[2]}\n`)
  await type(commands)
  expect(await beside('use', 'some')).toEqual({ 200: 500 })
  expect(await beside('use', 'meanwhile')).toEqual({ 200: 50 })
  expect(await type('ls /var/lib/postern')).not.toMatch(/newer|back/)
}

/** Upgrades two processes with a shared store, and goes back. Each request of the clients is answered, and each login stays. */
export async function upgradeFleet({ beside, configure, install, poll, type }: Upgrade): Promise<void> {
  await type('apt-get install -y redis-server >/dev/null 2>&1')
  await type("printf 'requirepass secret-of-some-length\\n' >> /etc/redis/redis.conf")
  await type('systemctl restart redis-server')
  await install('former')
  await type('systemctl disable --now postern 2>&1')
  await configure('shared')
  await type('systemctl enable --now postern@1 postern@2 2>&1')
  await type(
    'for n in 1 2; do until postern healthy --config /etc/postern/postern.yaml --set admin.address=127.0.0.1:946$n; do sleep 0.1; done; done',
  )
  expect(await beside('log-in', 'shared', PASSWORDS.htpasswd, '200')).toBe(200)
  for (const which of ['present', 'former'] as const) {
    const stop = await poll('shared')
    await install(which)
    expect(await beside('use', 'shared')).toEqual({ 200: 200 })
    const { statuses, failures } = await stop()
    expect([which, Object.keys(statuses), failures]).toEqual([which, ['200'], 0])
    expect(await beside('refresh', 'shared')).toBe(200)
    expect(await beside('use', 'shared')).toEqual({ 200: 200 })
  }
  expect(await type('systemctl is-active postern@1 postern@2')).toBe('active\nactive\n')
}
