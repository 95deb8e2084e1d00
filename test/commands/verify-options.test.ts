import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { type VerifyFlags, verifyOptionsOf } from '../../src/commands/verify/verify-options.ts'
import { runInProcess } from '../process/in-process.ts'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'

const URL_OF_SERVER = 'https://device.example'

let folder: string
let passwordFile: string

beforeEach(() => {
  folder = temporaryDirectory()
  passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, 'hunter2\n', { mode: 0o600 })
})

/** Writes a file and returns its path. */
function file(content: string | Uint8Array): string {
  const path = join(folder, 'file')
  writeFileSync(path, content, { mode: 0o600 })
  return path
}

const optionsOf = (flags: VerifyFlags = {}, url = URL_OF_SERVER) =>
  verifyOptionsOf(url, { passwordFile, ...flags })

/** The problems of a command line. */
const problemsOf = (flags: VerifyFlags, url?: string) =>
  optionsOf(flags, url).then(
    () => [],
    (error) => error.problems,
  )

describe('the options of postern verify', () => {
  it('have the documented limits and reasonable defaults', async () => {
    expect(await optionsOf()).toEqual({
      url: new URL(URL_OF_SERVER),
      password: 'hunter2',
      path: '/',
      tls: { ca: undefined, insecure: false },
      limits: { api: { requests: 60, window: 60 }, oauth: { requests: 30, window: 60 } },
      quick: false,
      only: [],
      flood: { seconds: 10, connections: 20 },
      revocationPath: '/oauth/revoke',
    })
  })

  it('take everything that the flags say', async () => {
    const { certFile } = await makeCertificate()
    const options = await optionsOf(
      {
        path: '/api/v1/status?verbose=1&name=a%20b',
        quick: true,
        only: 'c13, C4,h69',
        ca: certFile,
        apiLimit: '120/30',
        oauthLimit: '10/5',
        flood: '300',
        connections: '1',
        revocationPath: 'off',
      },
      'HTTPS://[2001:db8::7]:8443/',
    )
    expect(options).toMatchObject({
      path: '/api/v1/status?verbose=1&name=a%20b',
      tls: { ca: readFileSync(certFile, 'utf8'), insecure: false },
      limits: { api: { requests: 120, window: 30 }, oauth: { requests: 10, window: 5 } },
      quick: true,
      only: ['C4', 'C13', 'H69'],
      flood: { seconds: 300, connections: 1 },
      revocationPath: undefined,
    })
    expect(options.url.origin).toBe('https://[2001:db8::7]:8443')
  })

  it('take a password with any characters, without its line end and byte order mark', async () => {
    for (const [content, password] of [
      ['hunter2', 'hunter2'],
      ['hunter2\r\n', 'hunter2'],
      ['\ufeffnäive & 100% +$ ', 'näive & 100% +$ '],
      ['$5 a month', '$5 a month'],
    ] as const)
      expect((await optionsOf({ passwordFile: file(content) })).password).toBe(password)
  })

  it('accept http and --insecure', async () => {
    expect((await optionsOf({}, 'http://127.0.0.1:8080')).url.origin).toBe('http://127.0.0.1:8080')
    expect((await optionsOf({ insecure: true })).tls).toEqual({ ca: undefined, insecure: true })
  })

  it.each<readonly [url: string, says: string]>([
    ['device.example', 'the URL must be the address of the server, such as https://device.example'],
    ['localhost:8443', 'the URL must be the address'],
    ['ftp://device.example', 'the URL must be the address'],
    ['https:device.example', 'the URL must be the address'],
    ['https://', 'the URL must be the address'],
    ['https://a b', 'the URL must be the address'],
    ['https://[::1', 'the URL must be the address'],
    ['https://h:99999', 'the URL must be the address'],
    ['https://h:0', 'the URL must have a port from 1 to 65535'],
    ['https://admin:geheim@h', 'the URL must not contain a user or password'],
    ['https://@h', 'the URL must not contain a user or password'],
    ['https://h/?x=1', 'the URL must have neither query nor fragment; a query belongs to --path'],
    ['https://h#x', 'the URL must have neither query nor fragment'],
    ['https://h:8443/api/v1', 'the URL must end after the port; write https://h:8443 --path /api/v1'],
  ])('refuse %s as the URL', async (url, says) => {
    const problems = await problemsOf({}, url)
    expect(problems).toEqual([expect.stringContaining(says)])
    expect(problems[0]).not.toContain('geheim')
  })

  it.each<readonly [what: string, flags: VerifyFlags, says: string]>([
    ['no slash', { path: 'status' }, '--path: must begin with /, such as /status'],
    ['an empty path', { path: '' }, '--path: must begin with /'],
    ['a URL as the path', { path: 'https://evil.example/' }, '--path: must begin with /'],
    ['a fragment', { path: '/a#b' }, '--path: must not have a fragment (#)'],
    ['a space', { path: '/a b' }, '--path: must be sent as it stands'],
    ['a line end', { path: '/a\r\nX: y' }, '--path: must be sent as it stands'],
    ['a letter outside of ASCII', { path: '/ä' }, '--path: must be sent as it stands'],
    ['half an escape', { path: '/100%' }, '--path: must be sent as it stands'],
    ['another host', { path: '//evil.example/' }, '--path: must not have ., .., //'],
    ['a backslash', { path: '/\\evil.example' }, '--path: must be sent as it stands'],
    ['dot segments', { path: '/a/../b' }, '--path: must not have ., .., //'],
    ['encoded dot segments', { path: '/a/%2e%2E/b' }, '--path: must not have ., .., //'],
    ['the token endpoint', { path: '/oauth/token?x' }, '--path: must not be the token endpoint'],
    ['the revocation endpoint', { path: '/oauth/revoke' }, '--path: must not be /oauth/revoke'],
    [
      'a revocation path without a slash',
      { revocationPath: 'revoke' },
      '--revocation-path: must begin with /',
    ],
    [
      'the token endpoint for revocation',
      { revocationPath: '/oauth/token' },
      '--revocation-path: must not be the token endpoint',
    ],
    [
      'the token endpoint in another spelling for revocation',
      { revocationPath: '/oauth/%74oken/?x' },
      '--revocation-path: must not be the token endpoint',
    ],
    [
      'the path of the API for revocation',
      { path: '/a?x=1', revocationPath: '/%61?y=2' },
      '--path: must not be /%61?y=2, at which the run revokes its tokens; see --revocation-path',
    ],
    [
      'the default path for revocation',
      { revocationPath: '/' },
      '--path: must not be /, at which the run revokes',
    ],
    [
      'the default path for revocation with a query',
      { path: '/oauth/revoke?x' },
      '--path: must not be /oauth/revoke, at which the run revokes its tokens',
    ],
    [
      'an unknown id',
      { only: 'C4,X1' },
      '--only: "X1" cannot be checked from outside; these can be checked: C1, C2, ',
    ],
    ['a name of Object', { only: 'constructor' }, '--only: "CONSTRUCTOR" cannot be checked'],
    [
      'an id for the inside',
      { only: 'C12' },
      '--only: "C12" cannot be checked from outside; these can be checked: C1',
    ],
    ['a missing id', { only: 'C4,' }, '--only: "" cannot be checked'],
    ['no id', { only: '' }, '--only: "" cannot be checked'],
    ['a limit of zero', { apiLimit: '0/60' }, '--api-limit: must be requests/seconds, such as 60/60'],
    ['a limit without its window', { apiLimit: '60' }, '--api-limit: must be requests/seconds'],
    [
      'a limit of three parts',
      { oauthLimit: '30/60/1' },
      '--oauth-limit: must be requests/seconds, such as 30/60',
    ],
    ['a limit with a unit', { oauthLimit: '30/60s' }, '--oauth-limit: must be requests/seconds'],
    ['an endless window', { oauthLimit: '30/999999' }, '--oauth-limit: must be requests/seconds'],
    ['no flood', { flood: '0' }, '--flood: must be a whole number, 1 to 300'],
    ['an endless flood', { flood: '301' }, '--flood: must be a whole number, 1 to 300'],
    ['half a second', { flood: '0.5' }, '--flood: must be a whole number'],
    ['a unit', { flood: '10s' }, '--flood: must be a whole number'],
    ['no connections', { connections: '' }, '--connections: must be a whole number, 1 to 200'],
    ['too many connections', { connections: '201' }, '--connections: must be a whole number, 1 to 200'],
    ['no authority', { ca: '/nowhere/ca.pem' }, '--ca: cannot read /nowhere/ca.pem: there is no such file'],
    ['an empty --ca', { ca: '' }, '--ca: the name of the file is empty'],
    ['an empty --password-file', { passwordFile: '' }, '--password-file: the name of the file is empty'],
    ['a folder', { ca: '/' }, '--ca: cannot read /: it is a folder'],
    [
      'both',
      { ca: '/nowhere', insecure: true },
      '--insecure accepts any certificate, so --ca would have no effect',
    ],
    [
      'no password file',
      { passwordFile: '/nowhere/password' },
      '--password-file: /nowhere/password: there is no such file',
    ],
  ])('refuse %s', async (_what, flags, says) => {
    expect(await problemsOf(flags)).toEqual([expect.stringContaining(says)])
  })

  it.each<readonly [flags: VerifyFlags]>([[{ ca: '/nowhere' }], [{ insecure: true }]])(
    'refuse %j for http, which has no certificate',
    async (flags) => {
      const says = '--ca and --insecure belong to an https URL'
      expect(await problemsOf(flags, 'http://device.example')).toEqual([expect.stringContaining(says)])
    },
  )

  it.each<readonly [content: string | Uint8Array, says: string]>([
    ['', 'it is empty'],
    ['\n', 'it is empty'],
    ['hunter2\nhunter3\n', 'it has several lines, and must have exactly one'],
    ['hunter\0two', 'it contains a NUL byte'],
    [Uint8Array.of(0x68, 0xff), 'it is not valid UTF-8'],
    ['x'.repeat(70_000), 'it is larger than 64 KiB'],
    [
      '$argon2id$v=19$m=7168,t=5,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNo',
      'it holds a hash, and verify has to send the password',
    ],
    ['$2b$10$abcdefghijklmnopqrstuuN0tAHashButTheFormOfOneIsEnough', 'it holds a hash'],
    ['{SSHA}c2VjcmV0', 'it holds a hash'],
  ])('refuse a password file with %j, without quoting it', async (content, says) => {
    const path = file(content)
    expect(await problemsOf({ passwordFile: path })).toEqual([
      expect.stringMatching(new RegExp(`^--password-file: ${path}: ${says}[^$}]*$`)),
    ])
  })

  it.each<readonly [content: string, says: string]>([
    ['', 'is empty'],
    ['hello', 'holds no certificate in PEM'],
    [
      '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n',
      'holds no certificate in PEM, but: PRIVATE KEY',
    ],
    ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', 'is damaged'],
  ])('refuse %j as an authority', async (content, says) => {
    expect(await problemsOf({ ca: file(content) })).toEqual([expect.stringContaining(says)])
  })

  it('are refused with every problem at once', async () => {
    const refused = verifyOptionsOf('device', { flood: '0', only: 'X1,C12' })
    await expect(refused).rejects.toMatchObject({
      exitCode: 2,
      problems: [
        expect.stringContaining('the URL must be'),
        '--password-file is missing: name a file with one line, the password of the device',
        expect.stringContaining('--only: "X1"'),
        expect.stringContaining('--only: "C12"'),
        expect.stringContaining('--flood'),
      ],
    })
  })
})

describe('postern verify', () => {
  it('exits with 2 and a line for each problem, before the first request', async () => {
    const { code, stdout, stderr } = await runInProcess([
      'verify',
      'https://localhost:1/x',
      '--quick',
      '--flood',
      'x',
    ])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr.split('\n')).toEqual([
      'postern verify: the URL must end after the port; write https://localhost:1 --path /x',
      'postern verify: --password-file is missing: name a file with one line, the password of the device',
      'postern verify: --flood: must be a whole number, 1 to 300',
      '',
    ])
  })

  it.each([
    [[], "error: missing required argument 'url'"],
    [
      ['https://h', '--ca', 'a', '--ca', 'b'],
      "option '--ca <file>' argument 'b' is invalid. The option must",
    ],
    [
      ['https://h', '--password-file', 'a', '--password-file', 'b'],
      "option '--password-file <file>' argument 'b' is invalid. The option must not be given twice",
    ],
    [['https://h', 'more'], 'error: too many arguments'],
    [['https://h', '--password', 'geheim'], "error: unknown option '--password'"],
  ])('exits with 2 for %j', async (args, says) => {
    const { code, stderr } = await runInProcess(['verify', ...args])
    expect([code, stderr]).toEqual([2, expect.stringContaining(says)])
  })
})
