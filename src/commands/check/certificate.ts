import { dirname } from 'node:path'
import { remakeSelfSigned } from '../../listen/self-signed.ts'
import {
  findSelfSigned,
  isSelfSigned,
  readPair,
  selfSignedPaths,
  type TlsSetting,
} from '../../listen/tls-material.ts'
import { describeValidity, validityOf } from '../../listen/tls-pair.ts'
import { KINDS } from '../../overview/alarm-kinds.ts'
import { systemClock } from '../../system/clock.ts'
import { check } from './part.ts'

const { meaning, remedy: setClock } = KINDS.PosternCertificateInvalid

export const CERTIFICATE = check({
  withReload: true,
  subjects: ({ config }) => [config],
  about: () => ({
    name: 'certificate',
    key: 'listen.tls',
    meaning: 'serve does not start, and a running Postern keeps the certificate that it has',
    remedy: 'correct the file, or remove listen.tls for a self-signed certificate',
  }),
  untried: ({ listen: { tls } }) => (tls === 'off' ? 'off, the listener uses cleartext' : undefined),
  look: ({ listen: { tls }, stateDir }) => lookAtPair(tls, stateDir),
  rows: {
    missing: ({ found, cert }) => found === 'missing' && `self-signed, created at the first start in ${cert}`,
    broken: ({ found, cert }) =>
      typeof found === 'object' &&
      'broken' in found && {
        warning: `${found.broken}; a start sets this self-signed pair aside and makes another`,
        meaning: 'clients that trust the old certificate do not connect then',
        remedy: `restore the file, or give the clients the new ${cert} after the start`,
      },
    'not yet valid': ({ validity, reason }) =>
      validity === 'not-yet-valid' && { failed: reason, meaning, remedy: setClock },
    renewable: ({ isRenewable, reason }) =>
      isRenewable && { warning: reason, meaning, remedy: 'start Postern, which renews it' },
    expiring: ({ validity, reason, replace }) =>
      validity === 'expiring' && { warning: reason, meaning, remedy: replace },
    expired: ({ validity, reason, replace }) =>
      validity === 'expired' && { failed: reason, meaning, remedy: replace },
    'no names': ({ cert, names }) =>
      names.length === 0 && {
        warning: `${cert} has no names (subjectAltName)`,
        meaning: 'clients that check the certificate do not connect, whatever its common name is',
        remedy: 'renew it with the names and addresses by which clients reach Postern',
      },
    valid({ cert, isOwn, names, until }) {
      const what = isOwn ? `self-signed, in ${cert}` : `${cert} matches its key`
      return `${what}; for ${names.join(', ')}; valid until ${new Date(until).toISOString()}`
    },
  },
})

/** Reads the pair and judges it. Creates none: a check writes nothing. */
async function lookAtPair(tls: TlsSetting, stateDir: string) {
  const isOwn = tls === 'off' || isSelfSigned(tls)
  const { cert } = isOwn ? selfSignedPaths(stateDir) : tls
  const found = isOwn ? await findSelfSigned(stateDir) : await readPair(tls)
  const pair = found === 'missing' || 'broken' in found ? undefined : found
  const wall = systemClock.wall()
  const validity = pair && validityOf(pair.valid, wall)
  const ending = validity === 'expiring' || validity === 'expired' ? pair : undefined
  return {
    found,
    cert,
    isOwn,
    validity,
    reason: pair === undefined ? '' : describeValidity(pair.valid, wall),
    // The renewal is tried in memory only.
    isRenewable: isOwn && ending && remakeSelfSigned(ending, ending.names, wall, true) !== undefined,
    replace: isOwn
      ? `Postern did not make it: remove ${dirname(cert)} and start Postern, which makes a new one`
      : KINDS.PosternCertificateExpires.remedy,
    names: pair?.names ?? [],
    until: pair?.valid.until.at ?? 0,
  }
}
