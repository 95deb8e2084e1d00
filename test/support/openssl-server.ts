import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { temporaryDirectory } from './certificate.ts'
import { closeLater } from './cleanup.ts'
import { needs } from './tools.ts'

/** What old firmware speaks: every cipher, key and signature that OpenSSL still has. */
export const ANY = 'ALL:@SECLEVEL=0'

let shared = ''

/** The RSA key (PEM) of the certificates that name no key. To make one takes more processor time than the rest of a test. */
function sharedKey(): string {
  shared ||= generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  }).privateKey
  return shared
}

/**
 * Makes a certificate for localhost and 127.0.0.1 with openssl, as arguments such as `-newkey rsa:512 -md5` say. One that another
 * signs (`-CA`) has a key of its own: with the key and the name of its CA, it would be its own CA.
 */
export function opensslCertificate(...options: readonly string[]): { certFile: string; keyFile: string } {
  needs('openssl')
  const folder = temporaryDirectory()
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1'
  let key = ['-keyout', keyFile]
  if (!options.includes('-newkey')) {
    if (options.includes('-CA')) key.unshift('-newkey', 'rsa:2048')
    else {
      writeFileSync(keyFile, sharedKey(), { mode: 0o600 })
      key = ['-key', keyFile]
    }
  }
  const files = ['-nodes', '-out', certFile, '-subj', '/CN=localhost', '-addext', names]
  execFileSync('openssl', ['req', '-x509', ...key, ...options, ...files], { stdio: 'ignore' })
  return { certFile, keyFile }
}

/** Starts `openssl s_server`, which answers each request with 200. Undefined if this OpenSSL does not know the arguments. */
export async function startOpenssl(
  { certFile, keyFile }: { readonly certFile: string; readonly keyFile: string },
  ...options: readonly string[]
): Promise<{ readonly port: number } | undefined> {
  needs('openssl')
  const args = ['s_server', '-accept', '127.0.0.1:0', '-www', '-cert', certFile, '-key', keyFile, ...options]
  const server: ChildProcess = spawn('openssl', args, { stdio: ['ignore', 'pipe', 'ignore'] })
  closeLater(async () => {
    if (server.exitCode !== null) return
    server.kill()
    await once(server, 'exit')
  })
  const stdout = server.stdout ?? undefined
  if (stdout === undefined) return undefined
  for await (const line of createInterface(stdout)) {
    const [, port] = /^ACCEPT .*:(\d+)$/.exec(line) ?? []
    if (port === undefined) continue
    stdout.resume()
    return { port: Number(port) }
  }
  return undefined
}
