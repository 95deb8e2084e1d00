import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { imageFile } from '../../deploy/build/image-file.ts'
import { makeSbom } from '../../deploy/build/sbom.ts'
import type { Vendor } from '../../deploy/build/vendor.ts'
import { SOURCE, VENDOR } from '../build/release-key.ts'
import { installedBundle } from '../build/shipped.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { run } from '../support/tools.ts'
import { installDebian } from './machine.ts'
import { executableFor, madeOnce, PROCESSOR } from './made-once.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The image that the first stage of the Dockerfile starts from. No registry is asked for it: `makeBase` makes the like. */
const BASE = 'debian:12-slim'

/** The vendor of the release that the image contains. Its name has characters that a Dockerfile must quote. */
export const MAKER: Vendor = {
  ...VENDOR,
  name: 'Example "Devices" \\ $PATH',
  source: 'https://source.example.com/postern',
}

/** Milliseconds: a Debian is downloaded and installed. */
export const TIMEOUT = 15 * 60_000

/** The part of an image's configuration that the tests read, by the names of Docker. */
export interface ImageConfig {
  readonly User: string
  readonly Env: readonly string[]
  readonly Entrypoint: readonly string[]
  readonly Cmd: readonly string[]
  readonly Labels: Readonly<Record<string, string>>
  readonly Volumes: Readonly<Record<string, object>>
  readonly ExposedPorts: Readonly<Record<string, object>>
  readonly StopSignal: string
  readonly Healthcheck?: { readonly Test: readonly string[] }
}

export interface Image {
  readonly config: ImageConfig
  /** The digest of its manifest as an OCI image. */
  readonly digest: string
  /** An OCI archive. */
  readonly archive: string
  /** A folder with the files of the image. It must not be changed. */
  readonly files: string
}

/** Runs a program that must succeed, and returns its standard output. */
export async function succeed(program: string, args: readonly string[], cwd = ROOT): Promise<string> {
  const { code, stdout, stderr } = await run(program, args, { cwd, timeout: TIMEOUT })
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} exited with ${code}: ${stderr.slice(-4_000)}`)
  return stdout.trim()
}

/** Builders of images that share a store of their own, which is removed with all images at the end. */
export interface ImageBuilder {
  /** Builds the Dockerfile of the release for the processor of this machine, on `base` in place of what the file names. */
  readonly build: (name: string, base?: string) => Promise<Image>
  /** The base image by its digest. */
  readonly base: string
  /** The flags of buildah and Podman for the store. */
  readonly store: readonly string[]
  /** The build context: the files of a checkout, with the executable. */
  readonly context: string
}

/** Prepares a store with the base image, and a build context with the executable. Needs root and Debian's archive. */
export async function prepareBuilder(): Promise<ImageBuilder> {
  const folder = temporaryDirectory()
  const store = [`--root=${join(folder, 'store')}`, `--runroot=${join(folder, 'run')}`]
  const buildah = (...args: string[]): Promise<string> => succeed('buildah', [...store, ...args])
  closeLater(async () => {
    await buildah('rm', '--all')
    await run('umount', [join(folder, 'store', 'overlay')])
  })
  const context = join(folder, 'context')
  const [base] = await Promise.all([makeBase(buildah), makeContext(context)])
  return {
    store,
    context,
    base,
    async build(name, from) {
      const flags = [
        '--isolation=chroot',
        '--format=docker',
        '--pull-never',
        '--timestamp=0',
        `--tag=${name}`,
        ...(from === undefined ? [] : [`--build-arg=BASE=${from}`]),
      ]
      const file = join(context, 'dist', 'Dockerfile')
      await buildah('build', ...flags, '--file', file, context)
      const archive = join(folder, `${name}.oci.tar`)
      await buildah('push', '--format=oci', name, `oci-archive:${archive}:${name}`)
      const { Digest: digest } = JSON.parse(await succeed('skopeo', ['inspect', `oci-archive:${archive}`]))
      const inspected = JSON.parse(await buildah('inspect', '--type=image', name))
      const container = await buildah('from', '--pull-never', name)
      return { config: inspected.Docker.config, digest, archive, files: await buildah('mount', container) }
    },
  }
}

/** Makes the base image. Resolves to its name with its digest. */
async function makeBase(buildah: (...args: string[]) => Promise<string>): Promise<string> {
  const archive = await madeOnce('image.tar', (path) =>
    installDebian(['--variant=apt', '--aptopt=Acquire::Languages "none"'], path),
  )
  const container = await buildah('from', 'scratch')
  await buildah('add', '--quiet', container, archive, '/')
  const name = `docker.io/library/${BASE}`
  await buildah('commit', '--rm', container, name)
  return `${name}@${await buildah('inspect', '--type=image', '--format={{.FromImageDigest}}', name)}`
}

/** The files of a checkout after `npm run release`, for one processor. */
async function makeContext(context: string): Promise<void> {
  const [dist, bundle] = [join(context, 'dist'), join(installedBundle(), 'dist')]
  await mkdir(dist, { recursive: true })
  await cp(await executableFor(), join(dist, `postern-linux-${PROCESSOR}`))
  await cp(join(bundle, 'LICENSES.txt'), join(dist, 'LICENSES.txt'))
  await writeFile(join(dist, 'Dockerfile'), await imageFile({ source: SOURCE, vendor: MAKER }))
  await writeFile(join(dist, 'postern.cdx.json'), await makeSbom({ time: SOURCE.time, vendor: MAKER }))
  for (const file of ['LICENSE', '.dockerignore', 'deploy/postern.yaml'])
    await cp(join(ROOT, file), join(context, file))
}
