import { access, readFile, rm } from 'node:fs/promises'
import { runTool } from './run-tool.ts'

/** What the signatures of releases are for. A signature that the key made for something else does not count. */
export const NAMESPACE = 'postern-release'

/** Throws unless `key` is a private key, or a public key whose private one the SSH agent may have. */
export async function checkKey(key: string): Promise<void> {
  await access(key).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`cannot read the key ${key}: ${error.code}`)
  })
  await runTool('ssh-keygen', ['-l', '-f', key], undefined, { quiet: true }).catch((error: Error) => {
    if (error.message.includes('missing')) throw error
    throw new Error(`${key} is no key of ssh-keygen: make one with ssh-keygen -t ed25519 -f ${key}`)
  })
}

/**
 * Signs a file into `file`.sig with the vendor's key. `key` is a private key, also one of a hardware key, or a public key, whose private
 * one the SSH agent has. Resolves to the public key, as in `authorized_keys`.
 */
export async function sign(file: string, key: string): Promise<string> {
  const signature = `${file}.sig`
  await rm(signature, { force: true })
  await runTool('ssh-keygen', ['-Y', 'sign', '-f', key, '-n', NAMESPACE, file])
  return publicKeyIn(await readFile(signature, 'utf8'))
}

/** The public key in a signature: OpenSSH's PROTOCOL.sshsig. */
function publicKeyIn(signature: string): string {
  const blob = Buffer.from(signature.replace(/-----.*-----/g, ''), 'base64')
  const START = 'SSHSIG'.length + 4
  const key = blob.subarray(START + 4, START + 4 + blob.readUInt32BE(START))
  const type = key.toString('latin1', 4, 4 + key.readUInt32BE(0))
  return `${type} ${key.toString('base64')}`
}
