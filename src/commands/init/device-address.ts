import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseUpstreamUrl } from '../../config/address.ts'
import { loadConfig } from '../../config/load.ts'
import { canDiagnose, diagnose } from '../../device/diagnosis.ts'
import { upstreamTarget } from '../../forward/settings.ts'
import { SetupError } from '../../system/setup-error.ts'
import { judgeDevice } from '../check/device-checks.ts'
import { type CheckResult, runCheck } from '../check/finding.ts'
import { describeResult } from '../check.ts'
import type { Questions } from './questions.ts'

/** Where the device is, and the certificate to trust. `newPem` has to be written to `ca`. */
export interface DeviceAddress {
  readonly url: string
  readonly ca?: string | undefined
  readonly newPem?: string | undefined
}

/** The address of `--url` and the file of `--device-ca`. Throws `SetupError` if the address is none. */
export function addressFromFlags(url: string, ca: string | undefined): DeviceAddress {
  const parsed = parseUpstreamUrl(url)
  if ('problem' in parsed) throw new SetupError(`--url: ${parsed.problem}`)
  return { url, ca: ca === undefined ? undefined : resolve(ca) }
}

/** The result of a try, and the certificate that the operator could trust to make it succeed. */
interface Tried {
  readonly result: CheckResult
  readonly certificate: string | undefined
}

/** Requests a page of the device. */
async function tryDevice({ url, ca, newPem }: DeviceAddress): Promise<Tried> {
  const { upstream } = loadConfig({ env: {}, sets: [`upstream.url=${url}`, 'password.file=none'] })
  const trusted =
    newPem === undefined && ca !== undefined ? { ...upstream, tls: { ...upstream.tls, ca } } : upstream
  const target = async () => {
    const read = await upstreamTarget(trusted, 'upstream')
    return newPem === undefined ? read : { ...read, ca: newPem }
  }
  const { result } = await runCheck({
    name: 'device',
    meaning: 'clients would get an error for every request but those for tokens',
    remedy: 'correct the address',
    run: async () => judgeDevice(await target(), trusted, 'upstream'),
  })
  if (result.result !== 'failed' || ca !== undefined) return { result, certificate: undefined }
  const found = await target()
  const trouble = canDiagnose('tls_certificate_error', found)
    ? await diagnose(found, 'upstream', upstream.connectTimeout)
    : undefined
  return { result, certificate: trouble?.certificate }
}

/** Tries an address without a terminal. Throws `SetupError` unless the device answers as it should. */
export async function requireDevice(address: DeviceAddress, say: (text: string) => void): Promise<void> {
  const { result, certificate } = await tryDevice(address)
  say(describeResult(result))
  if (result.result === 'ok') return
  const trust = certificate === undefined ? '' : 'save its certificate and name it with --device-ca, '
  throw new SetupError('nothing is written, because of the device', {
    exitCode: 1,
    remedy: `${trust}correct --url, or write the configuration nevertheless with --skip-checks`,
  })
}

/**
 * Asks for the address, if there is none yet, and tries it, until the operator is content. A self-signed certificate can be
 * trusted: it is then stored in `folder`.
 */
export async function askForDevice(
  given: DeviceAddress | undefined,
  folder: string,
  questions: Questions,
): Promise<DeviceAddress> {
  const pem = join(folder, 'device.pem')
  let address = given
  for (;;) {
    address ??= await askForAddress(questions)
    questions.say(`Trying ${address.url} ...\n`)
    const { result, certificate } = await questions.during(tryDevice(address))
    questions.say(describeResult(result))
    if (result.result === 'ok') return address
    const offer = certificate !== undefined && !existsSync(pem)
    const trust = offer ? `Trust this certificate and store it in ${pem} (t), go` : 'Go'
    const answer = await questions.ask(
      `${trust} on with this address (y), or try another one (type it)? [n]: `,
      'n',
    )
    if (/^y(?:es)?$/i.test(answer)) return address
    if (offer && /^t$/i.test(answer)) address = { url: address.url, ca: pem, newPem: certificate }
    else address = /^no?$/i.test(answer) ? undefined : completed(answer, questions)
  }
}

async function askForAddress(questions: Questions): Promise<DeviceAddress> {
  for (;;) {
    const address = completed(
      await questions.ask('Address of the device, such as http://192.0.2.7: '),
      questions,
    )
    if (address !== undefined) return address
  }
}

/** The address as a URL: without a scheme, http is meant. Says what is wrong with any other text. */
function completed(answer: string, questions: Questions): DeviceAddress | undefined {
  const url = /^[\w.[\]:-]+$/.test(answer) && !/^https?:/.test(answer) ? `http://${answer}` : answer
  const parsed = parseUpstreamUrl(url)
  if (!('problem' in parsed)) return { url }
  questions.say(`  ${parsed.problem}\n`)
  return undefined
}
