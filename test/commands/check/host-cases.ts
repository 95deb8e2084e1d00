import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { makeSelfSigned } from '../../../src/listen/self-signed.ts'
import { startHook } from '../../password/hook.ts'
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
      }),
    },
    'look failed': {
      'H108 no password file': () => ({
        set: ['password.file=/nowhere'],
      }),
    },
    readable: {
      'a readable password file': () => ({}),
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
      }),
    },
    twins: {
      'H195 two names with one password': ({ file }) => ({
        set: [
          `passwords=${JSON.stringify(
            ['admin', 'monitor'].map((name) => ({ name, file: file(name, 'one password\n') })),
          )}`,
        ],
      }),
    },
  }),
  ...casesOf('live page', {
    'nothing tried': {
      'a page that others could open, without a password': () => ({
        set: ['admin.address=0.0.0.0:0'],
        name: 'live page',
      }),
      'a page on a descriptor that others may open, without a password': () => ({
        set: ['admin.address=fd:3'],
        name: 'live page',
      }),
    },
    'look failed': {
      'H108 no file with the password of the page': () => ({
        set: ['admin.password_file=/nowhere'],
      }),
    },
    readable: {
      'the password of the page': ({ file }) => ({
        set: [`admin.password_file=${file('page', HASHED_PASSWORD)}`],
        name: 'admin.password_file',
      }),
    },
  }),
  ...casesOf('places', {
    default: {
      'the default': () => ({}),
    },
    careful: {
      'fewer than the default': () => ({ set: ['upstream.max_in_flight={min: 2, max: 3}'] }),
    },
    risky: {
      auto: () => ({ set: ['upstream.max_in_flight=auto'] }),
      'a higher maximum, for a device that speaks HTTP/1.0': () => ({
        set: ['upstream.max_in_flight={max: 16}', 'upstream.version=1.0'],
      }),
    },
    fixed: {
      'a number': () => ({ set: ['upstream.max_in_flight=8'] }),
      'one at a time, where streams count': () => ({
        set: ['upstream.max_in_flight=1', 'upstream.max_tunnels=1'],
      }),
      'routes that share the places': () => ({
        set: [
          'upstream.max_in_flight=2',
          'upstream.max_streams=1',
          'upstream.max_tunnels=1',
          'upstream.routes={/a/: {url: "http://127.0.0.1:1"}, /b/: {url: "http://127.0.0.1:2"}}',
        ],
      }),
      'a route of its own': () => ({
        set: ['upstream.routes={/b/: {url: "http://127.0.0.1:1", max_in_flight: 3}}'],
        name: 'places of /b/',
      }),
    },
  }),
  ...casesOf('memory', {
    planned: {
      'H248 what clients may hold': () => ({ set: ['listen.memory=64MiB'] }),
    },
  }),
]

const HOOKS: readonly Case[] = [
  ...casesOf('password hook', {
    'look failed': {
      'H361 a hook whose socket is missing': () => ({ set: ['password.socket=/nowhere/check.sock'] }),
    },
    'no answer': {
      'H360 a hook that closes the connection': async () => {
        const hook = await startHook()
        hook.answer = (_line, peer) => peer.end()
        return { set: [`password.socket=${hook.socket}`] }
      },
    },
    'no fingerprint': {
      'C8 a hook without a fingerprint': async () => ({
        set: [`password.socket=${(await startHook({ fingerprint: undefined })).socket}`],
      }),
    },
    answers: {
      'C8 a hook with a fingerprint': async () => ({
        set: [`password.socket=${(await startHook()).socket}`],
      }),
    },
  }),
]

const CERTIFICATES: readonly Case[] = [
  ...casesOf('certificate', {
    'nothing tried': {
      cleartext: () => ({}),
    },
    'look failed': {
      async "H108 certificate and key in each other's place"() {
        const { certFile: key, keyFile: cert } = await makeCertificate()
        return {
          set: [`listen.tls=${JSON.stringify({ cert, key })}`],
        }
      },
    },
    missing: {
      'a pair that the first start makes': () => ({
        set: ['listen.tls=auto'],
      }),
    },
    broken: {
      'half a pair of its own'({ directory }) {
        storePair(directory, { ...makeSelfSigned('host', ['localhost'], Date.now()), key: '' })
        return {
          set: ['listen.tls=auto'],
        }
      },
    },
    'not yet valid': {
      'a pair of its own from the future: the clock is wrong'({ directory }) {
        const pair = makeSelfSigned('host', ['localhost'], Date.now() + 2 * YEAR)
        storePair(directory, pair)
        return {
          set: ['listen.tls=auto'],
        }
      },
    },
    renewable: {
      'an expired pair of its own, which it leaves as it is'({ directory }) {
        const pair = makeSelfSigned('host', ['localhost'], Date.now() - 50 * YEAR)
        const file = storePair(directory, pair)
        return {
          set: ['listen.tls=auto'],
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
        return { set: [`listen.tls=${JSON.stringify({ cert, key })}`] }
      },
    },
    expired: {
      async 'an expired pair in the state folder that Postern did not make'({ directory }) {
        storePair(directory, await makeCertificate('x', { keyType: 'rsa', notAfter: new Date('2020-01-01') }))
        return {
          set: ['listen.tls=auto'],
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
        }
      },
    },
  }),
]

const STATE_FOLDERS: readonly Case[] = [
  ...casesOf('state folder', {
    writable: {
      'a state folder': () => ({}),
    },
    missing: {
      'a state folder that the first start makes': ({ directory }) => ({
        set: [`state_dir=${directory}/state`],
        after: () => expect(readdirSync(directory)).toEqual(['password']),
      }),
    },
    'without its parent': {
      'a state folder whose parent does not exist': ({ directory }) => ({
        set: [`state_dir=${directory}/a/b`],
      }),
    },
    closed: {
      'H108 a state folder below a file'({ file }) {
        const below = file('file', '')
        return {
          set: [`state_dir=${below}/state`],
        }
      },
    },
    'closed to a new certificate': {
      'H108 the same, where a start has to store its certificate'({ file }) {
        const below = file('file', '')
        return {
          set: [`state_dir=${below}/state`, 'listen.tls=auto'],
        }
      },
    },
    'too long': {
      'a state folder whose path is too long for the control socket': ({ directory }) => ({
        set: [`state_dir=${join(directory, 'x'.repeat(90))}`],
      }),
    },
  }),
]

const ADDRESSES: readonly Case[] = [
  ...casesOf('address', {
    free: {
      'H106 a free port': () => ({ name: 'listen.address' }),
    },
    creatable: {
      'H106 a path for a socket': ({ directory }) => ({
        set: [`listen.address=unix:${directory}/public.sock`],
      }),
    },
    'look failed': {
      'H108 a path for a socket without its folder': () => ({
        set: ['listen.address=unix:/nowhere/public.sock'],
      }),
      'H108 a file in place of a socket': ({ file }) => ({
        set: [`admin.address=unix:${file('file', '')}`],
        name: 'admin.address',
      }),
      async 'H106 the port of another program on another address than the running sidecar has'() {
        const site = await prepareSite()
        const { port } = new URL((await site.serve()).url)
        const holder = createServer().listen(Number(port), '127.0.0.2')
        closeLater(() => void holder.close())
        await once(holder, 'listening')
        return {
          set: [`listen.address=127.0.0.2:${port}`, `state_dir=${site.stateDir}`],
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
        }
      },
      async 'H106 the port of another program'() {
        const port = await takenPort()
        return {
          set: [`listen.address=127.0.0.1:${port}`],
        }
      },
      async 'H106 the same for the port that redirects'() {
        const port = await takenPort()
        return {
          set: ['listen.tls=auto', `listen.redirect=127.0.0.1:${port}`],
          name: 'listen.redirect',
        }
      },
    },
    passed: {
      'a descriptor': () => ({
        set: ['listen.address=fd:3'],
      }),
    },
    own: {
      async 'H106 the port of the running sidecar on the same state_dir'() {
        const site = await prepareSite()
        const at = new URL((await site.serve()).url).host
        return {
          set: [`listen.address=${at}`, `state_dir=${site.stateDir}`],
        }
      },
      async 'H106 the same written as every address'() {
        const site = await prepareSite()
        const { port } = new URL((await site.serve()).url)
        return {
          set: [`listen.address=0.0.0.0:${port}`, `state_dir=${site.stateDir}`],
        }
      },
      async 'H106 the socket of the running sidecar on the same state_dir'({ directory }) {
        const path = join(directory, 'public.sock')
        const site = await prepareSite({ config: { listen: { address: `unix:${path}` } } })
        await site.launch().waitForLog('listening')
        return {
          set: [`listen.address=unix:${path}`, `state_dir=${site.stateDir}`],
        }
      },
    },
    absent: {
      'an address that this machine does not have, for clients': () => ({
        set: ['listen.address=192.0.2.1:8443'],
      }),
      'the same for programs': () => ({
        set: ['admin.address=192.0.2.1:9464'],
        name: 'admin.address',
      }),
    },
  }),
]

const NEIGHBOURS: readonly Case[] = [
  ...casesOf('other instances', {
    apart: {
      'H324 another sidecar with addresses of its own': () => ({
        ...neighbour(configuration('127.0.0.1:18501')),
      }),
    },
    shared: {
      'H324 another sidecar with the same address'() {
        const { asked } = neighbour(configuration('0.0.0.0:18501'))
        return {
          asked,
          set: ['listen.address=127.0.0.1:18501'],
        }
      },
    },
    unknown: {
      'H324 another sidecar whose file has a mistake'() {
        const { asked } = neighbour('listen: [')
        return { asked }
      },
    },
    unread: {
      'H324 a folder of others that is none'({ file }) {
        file('devices', '')
        const own = file('postern.yaml', '')
        return {
          asked: { file: own, places: { defaultConfig: own } },
        }
      },
    },
  }),
]

export const HOST_CASES: readonly Case[] = [
  ...PASSWORDS,
  ...HOOKS,
  ...CERTIFICATES,
  ...STATE_FOLDERS,
  ...ADDRESSES,
  ...NEIGHBOURS,
]
