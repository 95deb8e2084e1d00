import { readFile } from 'node:fs/promises'
import type { Source } from './source.ts'
import type { Vendor } from './vendor.ts'

const FILE = new URL('../Dockerfile', import.meta.url)

/** What the labels of the image say. */
export interface Labelled {
  readonly source: Source
  readonly vendor?: Vendor | undefined
  /** The image with the libraries, by digest: `--base`. Without it, the file names a tag, which may become another image. */
  readonly base?: string | undefined
}

/**
 * The Dockerfile of a release: `deploy/Dockerfile` with labels of the OCI image specification for commit, its time and the vendor, and
 * with the base. What is not known has no label. `SHA256SUMS` lists the file, so a signed release vouches for the labels.
 */
export async function imageFile({ source, vendor, base }: Labelled): Promise<string> {
  const { commit, changed, time } = source
  const labels = {
    revision: changed ? `${commit} with changed files` : commit,
    created: new Date(time * 1000).toISOString().replace('.000', ''),
    ...(vendor === undefined
      ? {}
      : {
          vendor: vendor.name,
          authors: vendor.maintainer,
          url: vendor.download,
          source: vendor.source ?? vendor.download,
        }),
  }
  const lines = Object.entries(labels).map(
    ([name, value]) => `LABEL org.opencontainers.image.${name}=${quoted(value)}\n`,
  )
  const text = await readFile(FILE, 'utf8')
  return `${base === undefined ? text : text.replace(/^(ARG BASE=).*/m, (_, start) => start + base)}${lines.join('')}`
}

/** A value in a Dockerfile, which expands `$NAME` also between quotes. */
function quoted(value: string): string {
  return `"${value.replaceAll(/["\\$]/g, '\\$&')}"`
}
