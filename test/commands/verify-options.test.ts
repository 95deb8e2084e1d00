import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { type VerifyFlags, verifyOptionsOf } from '../../src/commands/verify/verify-options.ts'
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

// usage.txt has the command lines that are refused for their words alone.
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

  it('are no place to hide a bug: its error is not a problem of the command line', async () => {
    const only = 13 as unknown as string // the caller has a bug
    await expect(optionsOf({ only })).rejects.toThrow(TypeError)
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
})
