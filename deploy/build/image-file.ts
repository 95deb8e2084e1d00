import { readFile } from 'node:fs/promises'
import type { Source } from './source.ts'
import type { Vendor } from './vendor.ts'

const FILE = new URL('../Dockerfile', import.meta.url)

/** Where an image comes from. */
export interface ImageOrigin {
  readonly source: Source
  readonly vendor?: Vendor | undefined
}

/**
 * The Dockerfile of a release: `deploy/Dockerfile`, with labels of the OCI image specification for the commit, its time
 * and the vendor. A fact that is not known has no label. `SHA256SUMS` lists the file, so a signed release vouches for the labels.
 */
export async function imageFile({ source, vendor }: ImageOrigin): Promise<string> {
  const text = await readFile(FILE, 'utf8')
  const labels = Object.entries({ ...sourceLabels(source), ...vendorLabels(vendor) })
  return (
    text + labels.map(([name, value]) => `LABEL org.opencontainers.image.${name}=${quoted(value)}\n`).join('')
  )
}

function sourceLabels({ commit, changed, time }: Source) {
  return {
    revision: changed ? `${commit} with changed files` : commit,
    created: new Date(time * 1000).toISOString().replace('.000', ''),
  }
}

function vendorLabels(vendor: Vendor | undefined) {
  if (vendor === undefined) return {}
  const { name, maintainer, download, source = download } = vendor
  return { vendor: name, authors: maintainer, url: download, source }
}

/** A value in a Dockerfile, which expands `$NAME` also between quotes. */
function quoted(value: string): string {
  return `"${value.replaceAll(/["\\$]/g, '\\$&')}"`
}
