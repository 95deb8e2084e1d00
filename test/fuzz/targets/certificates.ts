import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { connect, createSecureContext, createServer, type SecureContextOptions } from 'node:tls'
import { makeCertificate } from '../../support/certificate.ts'
import { closeLater } from '../../support/cleanup.ts'
import type { Case } from '../case.ts'
import { latin1, shownCertificates, signAll } from '../certificate-grammar.ts'
import type { Job, Report } from '../certificate-peer.ts'
import { CLEARTEXT, type Target } from '../target.ts'

const PROGRAM = join(import.meta.dirname, '..', 'certificate-peer.ts')

const pem = (what: string, der: Buffer): string =>
  `-----BEGIN ${what}-----\n${der.toString('base64')}\n-----END ${what}-----\n`

/** What the peer shows, and the authority; undefined if OpenSSL cannot read it. */
function shownIn({
  writes,
}: Case): { readonly ca: string; readonly shown: SecureContextOptions } | undefined {
  const [signer, key, ...contents] = writes.map(latin1)
  try {
    if (signer === undefined || key === undefined) return undefined
    const { authority, chain } = signAll(signer, contents)
    const shown = {
      cert: chain.map((each) => pem('CERTIFICATE', each)).join(''),
      key: pem('PRIVATE KEY', key),
      ciphers: 'ALL:@SECLEVEL=0',
    }
    createSecureContext(shown)
    return { ca: pem('CERTIFICATE', authority), shown }
  } catch {
    return undefined
  }
}

/** The job without its number. */
type Order = Job extends infer J ? (J extends Job ? Omit<J, 'id'> : never) : never

/** A process that uses the certificates as Postern does. One that has ended is replaced. */
function createPeer() {
  let jobs = 0
  let child: ChildProcess | undefined

  function running(): ChildProcess {
    if (child === undefined) {
      const started = fork(PROGRAM, { stdio: 'inherit' })
      started.setMaxListeners(0)
      started.once('exit', () => {
        if (child === started) child = undefined
      })
      child = started
    }
    return child
  }

  closeLater(async () => {
    if (child === undefined) return
    const ended = once(child, 'exit')
    child.kill()
    await ended
  })

  /** Resolves with what is wrong. `listening`: called with the port on which it waits for a client. */
  return (order: Order, listening: (port: number) => void = () => {}): Promise<string[]> => {
    jobs += 1
    const id = jobs
    const peer = running()
    const { promise, resolve } = Promise.withResolvers<string[]>()
    const onReport = (report: Report): void => {
      if (report.id !== id) return
      if ('port' in report) listening(report.port)
      else settle(report.faults)
    }
    const onExit = (code: number | null, signal: string | null): void =>
      settle([`the process exited with ${code ?? signal}`])
    const settle = (faults: string[]): void => {
      peer.off('message', onReport).off('exit', onExit)
      resolve(faults)
    }
    peer.on('message', onReport).on('exit', onExit)
    // A process that has just crashed takes no job, and then says so.
    peer.send({ id, ...order }, () => {})
    return promise
  }
}

/** A server that shows the certificates, at the port that it resolves with. */
async function serve(shown: SecureContextOptions) {
  const server = createServer(shown, (socket) => void socket.on('error', () => {}).resume())
  server.on('tlsClientError', () => {})
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() } // on TCP
}

/**
 * Certificates of devices, and of clients, which Postern asks for nowhere today. What OpenSSL cannot read is left out: it never reaches
 * Node.
 */
export const certificates: Target = {
  name: 'certificates',
  settings: [CLEARTEXT],
  cases: shownCertificates.map((writes) => ({ writes, ending: 'end' })),
  async open() {
    const peer = createPeer()
    const own = await makeCertificate()
    return async (item) => {
      const given = shownIn(item)
      if (given === undefined) return []
      const { ca, shown } = given
      const server = await serve(shown)
      const ofServer = await peer({ port: server.port, ca })
      server.close()
      const ofClient = await peer({ own: { cert: own.cert, key: own.key }, ca }, (port) => {
        const client = connect({ ...shown, host: '127.0.0.1', port, rejectUnauthorized: false })
        client.on('error', () => {}).resume()
      })
      return [...ofServer, ...ofClient]
    }
  },
}
