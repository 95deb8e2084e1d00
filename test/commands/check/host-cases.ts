import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { makeSelfSigned } from '../../../src/listen/self-signed.ts'
import { prepareSite } from '../../process/serve.ts'
import { makeCertificate, temporaryDirectory } from '../../support/certificate.ts'
import { closeLater } from '../../support/cleanup.ts'
import { HASHED_PASSWORD } from '../../support/sidecar.ts'
import { needs } from '../../support/tools.ts'
import { type Case, casesOf } from './case.ts'

const YEAR = 31_557_600_000

/** Stores a pair where Postern keeps its own. */
function storePair(stateDir: string, { cert, key }: { readonly cert: string; readonly key: string }): string {
  mkdirSync(join(stateDir, 'tls'), { recursive: true })
  writeFileSync(join(stateDir, 'tls', 'key.pem'), key, { mode: 0o600 })
  const file = join(stateDir, 'tls', 'cert.pem')
  writeFileSync(file, cert)
  return file
}

/** A port of 127.0.0.1 that a server holds. */
async function takenPort(): Promise<number> {
  const holder = createServer().listen({ port: 0, host: '127.0.0.1' })
  await once(holder, 'listening')
  closeLater(() => void holder.close())
  return (holder.address() as AddressInfo).port
}

/** Another sidecar beside `postern.yaml` of this host, with this configuration. */
function neighbour(text: string) {
  const folder = temporaryDirectory()
  mkdirSync(join(folder, 'devices'))
  const other = join(folder, 'devices', 'pump.yaml')
  writeFileSync(other, text)
  const file = join(folder, 'postern.yaml')
  return { other, asked: { file, places: { defaultConfig: file } } }
}

const configuration = (address: string): string =>
  JSON.stringify({
    upstream: { url: 'http://127.0.0.1' },
    password: { file: 'x' },
    listen: { address },
    admin: { address: '127.0.0.1:0' },
  })

const PASSWORDS: readonly Case[] = [
  ...casesOf('password', {
    'nothing tried': {
      'a password that the device checks': () => ({
        set: ['password.device=true', 'upstream.auth={kind: basic, user: admin}'],
        says: 'the device, which checks the password of every grant',
      }),
    },
    'look failed': {
      'H108 no password file': () => ({
        set: ['password.file=/nowhere'],
        says: 'password.file: /nowhere: there is no such file',
        means: 'serve does not start, because no client could get a token',
        remedy: 'postern hash-password > /nowhere writes a usable one',
        exitCode: 2,
      }),
    },
    readable: {
      'a readable password file': () => ({ says: 'readable' }),
    },
    absent: {
      'a locked account': ({ file }) => ({
        set: [
          `passwords=${JSON.stringify([
            { name: 'admin', file: file('admin', HASHED_PASSWORD) },
            {
              name: 'jo',
              shadow: { file: file('shadow', `jo:!${HASHED_PASSWORD}:1:0:99999:7:::\n`), user: 'jo' },
            },
          ])}`,
        ],
        says: /^jo: .*the account is locked$/,
        result: 'failed',
      }),
    },
    twins: {
      'H195 two names with one password': ({ file }) => ({
        set: [
          `passwords=${JSON.stringify(
            ['admin', 'monitor'].map((name) => ({ name, file: file(name, 'one password\n') })),
          )}`,
        ],
        says: 'admin and monitor have the same password',
        remedy: 'change one of them',
        result: 'failed',
      }),
    },
  }),
  ...casesOf('live page', {
    'nothing tried': {
      'a page that others could open, without a password': () => ({
        set: ['admin.address=0.0.0.0:0'],
        name: 'live page',
        says: 'off: admin.address is not on loopback, and admin.password_file is not set',
      }),
    },
    'look failed': {
      'H108 no file with the password of the page': () => ({
        set: ['admin.password_file=/nowhere'],
        says: '/nowhere: there is no such file',
        means: 'serve does not start: it cannot guard the live page',
        exitCode: 2,
      }),
    },
    readable: {
      'the password of the page': ({ file }) => ({
        set: [`admin.password_file=${file('page', HASHED_PASSWORD)}`],
        name: 'admin.password_file',
        says: 'readable',
      }),
    },
  }),
  ...casesOf('memory', {
    planned: {
      'H248 what clients may hold': () => ({ set: ['listen.memory=64MiB'], says: /64 MiB/ }),
    },
  }),
]

const CERTIFICATES: readonly Case[] = [
  ...casesOf('certificate', {
    'nothing tried': {
      cleartext: () => ({ says: 'off, the listener uses cleartext' }),
    },
    'look failed': {
      async "H108 certificate and key in each other's place"() {
        const { certFile: key, keyFile: cert } = await makeCertificate()
        return {
          set: [`listen.tls=${JSON.stringify({ cert, key })}`],
          says: `listen.tls: ${cert} holds the private key and ${key} the certificate: swap the two`,
          exitCode: 2,
        }
      },
    },
    missing: {
      'a pair that the first start makes': ({ directory }) => ({
        set: ['listen.tls=auto'],
        says: `self-signed, created at the first start in ${directory}/tls/cert.pem`,
      }),
    },
    broken: {
      'half a pair of its own'({ directory }) {
        const cert = storePair(directory, { ...makeSelfSigned('host', ['localhost'], Date.now()), key: '' })
        return {
          set: ['listen.tls=auto'],
          says: `${directory}/tls/key.pem is empty; a start sets this self-signed pair aside and makes another`,
          remedy: `restore the file, or give the clients the new ${cert} after the start`,
          result: 'warning',
        }
      },
    },
    'not yet valid': {
      'a pair of its own from the future: the clock is wrong'({ directory }) {
        const pair = makeSelfSigned('host', ['localhost'], Date.now() + 2 * YEAR)
        storePair(directory, pair)
        return {
          set: ['listen.tls=auto'],
          says: /not valid before/,
          remedy: 'set the clock of this machine',
          result: 'failed',
        }
      },
    },
    renewable: {
      'an expired pair of its own, which it leaves as it is'({ directory }) {
        const pair = makeSelfSigned('host', ['localhost'], Date.now() - 50 * YEAR)
        const file = storePair(directory, pair)
        return {
          set: ['listen.tls=auto'],
          says: /expired/,
          remedy: 'start Postern, which renews it',
          result: 'warning',
          after: () => expect(readFileSync(file, 'utf8')).toBe(pair.cert),
        }
      },
    },
    expiring: {
      async 'a configured pair at its end'() {
        const { certFile: cert, keyFile: key } = await makeCertificate('x', {
          notBefore: new Date(Date.now() - YEAR),
          notAfter: new Date(Date.now() + 86_400_000),
        })
        return { set: [`listen.tls=${JSON.stringify({ cert, key })}`], says: /expire/, result: 'warning' }
      },
    },
    expired: {
      async 'an expired pair in the state folder that Postern did not make'({ directory }) {
        storePair(directory, await makeCertificate('x', { keyType: 'rsa', notAfter: new Date('2020-01-01') }))
        return {
          set: ['listen.tls=auto'],
          says: /expired/,
          remedy: `Postern did not make it: remove ${directory}/tls and start Postern, which makes a new one`,
          result: 'failed',
        }
      },
    },
    'no names': {
      'a certificate with a common name alone'({ directory }) {
        needs('openssl')
        const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')]
        const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
        const files = ['-out', cert, '-keyout', key, '-subj', '/CN=localhost']
        execFileSync('openssl', ['req', '-x509', ...kind, ...files], { stdio: 'ignore' })
        return {
          set: [`listen.tls=${JSON.stringify({ cert, key })}`],
          says: `${cert} has no names (subjectAltName)`,
          result: 'warning',
        }
      },
    },
    valid: {
      async 'the names and the end of a certificate'() {
        const { certFile: cert, keyFile: key } = await makeCertificate('x', {
          notAfter: new Date('2090-01-01'),
        })
        return {
          set: [`listen.tls=${JSON.stringify({ cert, key })}`],
          says: `${cert} matches its key; for localhost, 127.0.0.1; valid until 2090-01-01T00:00:00.000Z`,
        }
      },
    },
  }),
]

const STATE_FOLDERS: readonly Case[] = [
  ...casesOf('state folder', {
    writable: {
      'a state folder': ({ directory }) => ({ says: `${directory} is writable` }),
    },
    missing: {
      'a state folder that the first start makes': ({ directory }) => ({
        set: [`state_dir=${directory}/state`],
        says: `${directory}/state is created at the first start`,
        after: () => expect(readdirSync(directory)).toEqual(['password']),
      }),
    },
    'without its parent': {
      'a state folder whose parent does not exist': ({ directory }) => ({
        set: [`state_dir=${directory}/a/b`],
        says: `${directory}/a does not exist`,
        remedy: `mkdir -p ${directory}/a`,
        result: 'warning',
      }),
    },
    closed: {
      'H108 a state folder below a file'({ file }) {
        const below = file('file', '')
        return {
          set: [`state_dir=${below}/state`],
          says: `${below} is not a folder`,
          means: 'a restart loses all tokens, and postern status and revoke do not work',
          result: 'failed',
        }
      },
    },
    'closed to a new certificate': {
      'H108 the same, where a start has to store its certificate'({ file }) {
        const below = file('file', '')
        return {
          set: [`state_dir=${below}/state`, 'listen.tls=auto'],
          says: `${below} is not a folder`,
          means: 'serve does not start: it cannot store the self-signed certificate',
          exitCode: 2,
        }
      },
    },
    'too long': {
      'a state folder whose path is too long for the control socket': ({ directory }) => ({
        set: [`state_dir=${join(directory, 'x'.repeat(90))}`],
        says: /^status, explain, issue and revoke will not work: .*at most 107 bytes$/,
        result: 'failed',
      }),
    },
  }),
]

const ADDRESSES: readonly Case[] = [
  ...casesOf('address', {
    free: {
      'H106 a free port': () => ({ name: 'listen.address', says: /^127\.0\.0\.1:\d+ is free$/ }),
    },
    creatable: {
      'H106 a path for a socket': ({ directory }) => ({
        set: [`listen.address=unix:${directory}/public.sock`],
        says: `${directory}/public.sock can be created`,
      }),
    },
    'look failed': {
      'H108 a path for a socket without its folder': () => ({
        set: ['listen.address=unix:/nowhere/public.sock'],
        says: /^cannot listen on .*: there is no folder \/nowhere$/,
        result: 'failed',
      }),
      'H108 a file in place of a socket': ({ file }) => ({
        set: [`admin.address=unix:${file('file', '')}`],
        name: 'admin.address',
        says: /: it exists and is not a socket$/,
        result: 'failed',
      }),
      async 'H106 the port of another program on another address than the running sidecar has'() {
        const site = await prepareSite()
        const { port } = new URL((await site.serve()).url)
        const holder = createServer().listen(Number(port), '127.0.0.2')
        closeLater(() => void holder.close())
        await once(holder, 'listening')
        return {
          set: [`listen.address=127.0.0.2:${port}`, `state_dir=${site.stateDir}`],
          says: /^cannot listen on 127\.0\.0\.2:\d+: the port is in use \(EADDRINUSE\)$/,
          result: 'failed',
        }
      },
      async 'H106 the socket of another program'({ directory }) {
        const path = join(directory, 'taken.sock')
        const holder = createServer().listen(path)
        closeLater(() => void holder.close())
        await once(holder, 'listening')
        return {
          set: [`admin.address=unix:${path}`],
          name: 'admin.address',
          says: `cannot listen on unix:${path}: the socket is in use by another program (EADDRINUSE)`,
          remedy: new RegExp(`ss -lxp src ${path}`),
          result: 'failed',
        }
      },
      async 'H106 the port of another program'() {
        const port = await takenPort()
        return {
          set: [`listen.address=127.0.0.1:${port}`],
          says: `cannot listen on 127.0.0.1:${port}: the port is in use (EADDRINUSE)`,
          means: 'serve does not start',
          remedy: `ss -tanp 'sport = :${port}' shows by what: stop that program, wait a minute if it is only TIME-WAIT, or use another port`,
          result: 'failed',
        }
      },
    },
    passed: {
      'a descriptor': () => ({
        set: ['listen.address=fd:3'],
        says: 'descriptor 3, which the service manager passes at the start',
      }),
    },
    own: {
      async 'H106 the port of the running sidecar on the same state_dir'() {
        const site = await prepareSite()
        const at = new URL((await site.serve()).url).host
        return {
          set: [`listen.address=${at}`, `state_dir=${site.stateDir}`],
          says: `${at} is in use by the running Postern of ${site.stateDir}, as it should be`,
        }
      },
      async 'H106 the same written as every address'() {
        const site = await prepareSite()
        const { port } = new URL((await site.serve()).url)
        return {
          set: [`listen.address=0.0.0.0:${port}`, `state_dir=${site.stateDir}`],
          says: /^0\.0\.0\.0:\d+ is in use by the running Postern/,
        }
      },
      async 'H106 the socket of the running sidecar on the same state_dir'({ directory }) {
        const path = join(directory, 'public.sock')
        const site = await prepareSite({ config: { listen: { address: `unix:${path}` } } })
        await site.launch().waitForLog('listening')
        return {
          set: [`listen.address=unix:${path}`, `state_dir=${site.stateDir}`],
          says: /public\.sock is in use by the running Postern/,
        }
      },
    },
    absent: {
      'an address that this machine does not have, for clients': () => ({
        set: ['listen.address=192.0.2.1:8443'],
        says: /this machine has no address 192\.0\.2\.1/,
        means: 'serve waits until it has the address, and no client can connect meanwhile',
        result: 'failed',
      }),
      'the same for programs': () => ({
        set: ['admin.address=192.0.2.1:9464'],
        name: 'admin.address',
        says: /this machine has no address 192\.0\.2\.1/,
        means: 'serve waits until it has the address, and no program can ask the sidecar there meanwhile',
        result: 'failed',
      }),
    },
  }),
]

const NEIGHBOURS: readonly Case[] = [
  ...casesOf('other instances', {
    apart: {
      'H324 another sidecar with addresses of its own': () => ({
        ...neighbour(configuration('127.0.0.1:18501')),
        says: 'none has an address of this one: pump',
      }),
    },
    shared: {
      'H324 another sidecar with the same address'() {
        const { asked, other } = neighbour(configuration('0.0.0.0:18501'))
        return {
          asked,
          set: ['listen.address=127.0.0.1:18501'],
          says: `listen.address 127.0.0.1:18501 is also listen.address in ${other}`,
          remedy: 'give one of them another port',
          result: 'warning',
        }
      },
    },
    unknown: {
      'H324 another sidecar whose file has a mistake'() {
        const { asked, other } = neighbour('listen: [')
        return { asked, says: `the addresses in ${other} are not known`, result: 'warning' }
      },
    },
    unread: {
      'H324 a folder of others that is none'({ file }) {
        const folder = file('devices', '')
        const own = file('postern.yaml', '')
        return {
          asked: { file: own, places: { defaultConfig: own } },
          says: `cannot read the folder ${folder} (ENOTDIR)`,
          result: 'warning',
        }
      },
    },
  }),
]

export const HOST_CASES: readonly Case[] = [
  ...PASSWORDS,
  ...CERTIFICATES,
  ...STATE_FOLDERS,
  ...ADDRESSES,
  ...NEIGHBOURS,
]
