import { dirname } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { remakeSelfSigned } from '../../listen/self-signed.ts'
import {
  findSelfSigned,
  isSelfSigned,
  readPair,
  selfSignedPaths,
  type TlsSetting,
} from '../../listen/tls-material.ts'
import type { TlsMaterial } from '../../listen/tls-pair.ts'
import { describeValidity, validityOf } from '../../listen/validity.ts'
import { systemClock } from '../../system/clock.ts'
import { type Check, CheckFailure, type Finding } from './finding.ts'

export function certificateCheck(config: Config): Check {
  return {
    name: 'certificate',
    key: 'listen.tls',
    meaning: 'serve does not start, and a running Postern keeps the certificate that it has',
    remedy: 'correct the file, or remove listen.tls for a self-signed certificate',
    run: () => checkCertificate(config),
  }
}

/** Creates no pair: a check writes nothing. */
async function checkCertificate({ listen: { tls }, stateDir }: Config): Promise<Finding> {
  if (tls === 'off') return 'off, the listener uses cleartext'
  const { cert } = isSelfSigned(tls) ? selfSignedPaths(stateDir) : tls
  const found = isSelfSigned(tls) ? await findSelfSigned(stateDir) : await readPair(tls)
  if (found === 'missing') return `self-signed, created at the first start in ${cert}`
  if ('broken' in found) {
    return {
      warning: `${found.broken}; a start sets this self-signed pair aside and makes another`,
      meaning: 'clients that trust the old certificate do not connect then',
      remedy: `restore the file, or give the clients the new ${cert} after the start`,
    }
  }
  const wall = systemClock.wall()
  const validity = validityOf(found.valid, wall)
  if (validity !== 'valid') {
    const sentence = describeValidity(found.valid, wall)
    const meaning = 'clients that check the certificate do not connect while it is not valid'
    if (validity === 'not-yet-valid') {
      throw new CheckFailure(sentence, { meaning, remedy: 'set the clock of this machine' })
    }
    const renewable = isSelfSigned(tls) && (await isRenewable(found, wall))
    const remedy = renewable ? 'start Postern, which renews it' : replacement(tls, cert)
    if (validity === 'expiring' || renewable) return { warning: sentence, meaning, remedy }
    throw new CheckFailure(sentence, { meaning, remedy })
  }
  if (found.names.length === 0) {
    return {
      warning: `${cert} has no names (subjectAltName)`,
      meaning: 'clients that check the certificate do not connect, whatever its common name is',
      remedy: 'renew it with the names and addresses by which clients reach Postern',
    }
  }
  const what = isSelfSigned(tls) ? `self-signed, in ${cert}` : `${cert} matches its key`
  return `${what}; for ${found.names.join(', ')}; valid until ${new Date(found.valid.until.at).toISOString()}`
}

/** Whether a start can renew the pair, because Postern made it. Tries it in memory. */
async function isRenewable(found: TlsMaterial, wall: number): Promise<boolean> {
  return remakeSelfSigned(found, found.names, wall, true) !== undefined
}

function replacement(tls: TlsSetting, cert: string): string {
  return isSelfSigned(tls)
    ? `Postern did not make it: remove ${dirname(cert)} and start Postern, which makes a new one`
    : 'renew it and replace both files: a running Postern takes them at once'
}
