// A failure whose message is already a sentence for the person in front of the page.
export class Told extends Error {
  override readonly name: string = 'Told'
}
