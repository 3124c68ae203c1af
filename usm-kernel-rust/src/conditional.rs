//! Parts of the text that the compiler may remove: `cfg` and `cfg_attr`. An attribute gets its text
//! before they have an effect, so it cannot know which parts remain.

use proc_macro2::{Span, TokenStream, TokenTree};

/// The reason for refusing such a part.
pub(crate) const REASON: &str = "an attribute reads `cfg` before the compiler evaluates it, and would read a part that is not there: put `cfg` before the \
     attribute of a whole kernel or module";

/// The first `cfg` or `cfg_attr` of the tokens.
pub(crate) fn first(tokens: TokenStream) -> Option<Span> {
    let mut rooms = vec![(tokens.into_iter(), false)];
    while let Some((tokens, is_attribute)) = rooms.last_mut() {
        let Some(token) = tokens.next() else {
            rooms.pop();
            continue;
        };
        match token {
            TokenTree::Ident(name) if *is_attribute && (name == "cfg" || name == "cfg_attr") => {
                return Some(name.span());
            }
            // Only the first word of an attribute is its name.
            _ if *is_attribute => {
                rooms.pop();
            }
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                if let Some(TokenTree::Group(group)) = tokens.next() {
                    rooms.push((group.stream().into_iter(), true));
                }
            }
            TokenTree::Group(group) => rooms.push((group.stream().into_iter(), false)),
            _ => {}
        }
    }
    None
}
