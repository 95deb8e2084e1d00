import { describe, expect, it } from 'vitest'
import { neededPermissions, secretFiles } from '../../src/config/files.ts'
import { parseStoreUrl, STORE_PROBLEM } from '../../src/config/store-fields.ts'
import { effectiveYaml, load } from './sources.ts'

const PLAIN = {
  server: { host: 'h', port: 6379 },
  database: 0,
  tls: false,
  user: undefined,
  password: undefined,
} as const

const ESCAPES = 'in a user or password, write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and % as %25'
const HOSTS = `must name one server as host, host:port or [IPv6]:port; ${ESCAPES}`

describe('the URL of a shared store', () => {
  it.each([
    ['valkey://h', {}, 'valkey://h:6379'],
    ['redis://h:6379/', {}, 'valkey://h:6379'],
    ['valkey://[::1]:7000/3', { server: { host: '::1', port: 7000 }, database: 3 }, 'valkey://[::1]:7000/3'],
    ['rediss://:p%40ss@h', { tls: true, password: 'p@ss' }, 'valkeys://:p%40ss@h:6379'],
    ['valkeys://user@h', { tls: true, user: 'user' }, 'valkeys://user@h:6379'],
    ['valkey://%C3%A4:p%3A%2F@h', { user: 'ä', password: 'p:/' }, 'valkey://%C3%A4:p%3A%2F@h:6379'],
    ['valkey+unix:/run/v.sock', { server: { path: '/run/v.sock' } }, 'valkey+unix:/run/v.sock'],
    ['redis+unix:///run/v.sock', { server: { path: '/run/v.sock' } }, 'valkey+unix:/run/v.sock'],
    [
      'valkey+unix://u:p@/run/v',
      { server: { path: '/run/v' }, user: 'u', password: 'p' },
      'valkey+unix://u:p@/run/v',
    ],
  ])('%s is parsed', (text, expected, written) => {
    const parsed = parseStoreUrl(text)
    expect(parsed).toEqual({ value: { ...PLAIN, ...expected } })
    expect(parseStoreUrl(written)).toEqual(parsed)
  })

  it.each([
    ['', STORE_PROBLEM],
    ['disk', STORE_PROBLEM],
    ['http://h', STORE_PROBLEM],
    ['valkey', STORE_PROBLEM],
    ['valkey+sentinel://h/main', STORE_PROBLEM],
    ['valkey+cluster://h', STORE_PROBLEM],
    ['valkey://h h', STORE_PROBLEM],
    ['valkey:h', 'must have // and a host, such as valkey://host:6379'],
    ['valkey:///0', 'must have // and a host, such as valkey://host:6379'],
    ['valkey://h?db=1', `must have no query and no fragment; ${ESCAPES}`],
    ['valkey://h:0', HOSTS],
    ['valkey://h:65536', HOSTS],
    ['valkey://::1', HOSTS],
    ['valkey://1.2.3', HOSTS],
    ['valkey://a@b@h', HOSTS],
    ['valkey://a:b:c@h', HOSTS],
    ['valkey://@h', HOSTS],
    ['valkey://a:@h', HOSTS],
    ['valkey://%zz@h', HOSTS],
    ['valkey://a,b', HOSTS],
    ['valkey://h/x', 'must end after the port, or in the number of a database, such as valkey://host:6379/0'],
    ['valkeys+unix:/a', 'must not ask for TLS on a Unix socket'],
    ['valkey+unix:a', 'must name the socket by an absolute path, such as /run/postern.sock'],
    ['valkey+unix://h/a', 'must name no host before the path of the socket'],
  ])('%j is refused with what would do', (text, problem) => {
    expect(parseStoreUrl(text)).toEqual({ problem })
  })

  it.each([
    ['rediss://user:hunter2@h/1', 'rediss://user:***@h/1'],
    ['valkey://:hunter2@[::1]:7000', 'valkey://:***@[::1]:7000'],
    ['valkey+unix://u:hunter2%40@/run/v', 'valkey+unix://u:***@/run/v'],
    ['valkey://user@h:1', 'valkey://user@h:1'],
  ])('%s is shown with its password masked, and loads again', (url, shown) => {
    const page = effectiveYaml({ sets: [`tokens.store=${url}`] })
    expect(page).toContain(`  store: ${shown}\n`)
    expect(page).not.toContain('hunter2')
    expect(effectiveYaml({ file: page })).toBe(page)
  })

  it('comes with files that the sidecar has to read', () => {
    const sets = ['tokens.store=rediss://user@h', 'store.password_file=/p', 'store.tls.ca=/ca.pem']
    const config = load({ sets })
    expect(secretFiles(config)).toContainEqual({ key: 'store.password_file', file: '/p' })
    for (const path of ['/p', '/ca.pem'])
      expect(neededPermissions(config)).toContainEqual({ path, kind: 'file', write: false })
  })
})
