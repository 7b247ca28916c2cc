//! Writing.
//!
//! | module | holds |
//! |---|---|
//! | `options` | what the caller chooses |
//! | `output`, `heap` | the file: space at its end, gathered pieces, elements of variable length |
//! | `plan`, `types` | what a dataset will be, decided before anything is written |
//! | `array`, `index` | chunks on their way, and the indexes that find them |
//! | `object`, `group`, `fractal`, `attributes`, `scales` | headers, links and attributes, few or many |
//! | `node`, `tree`, `names`, `sink` | the nodes of a new file, their paths, and how it is finished |
//! | `space` | files that are cut into pages, and free space that files keep |
//! | `append`, `existing`, `record`, `grow`, `extend`, `edit` | files that are added to: frames, larger datasets, links, attributes, changes in their places |

mod append;
mod array;
mod attributes;
mod edit;
mod existing;
mod extend;
mod fractal;
mod group;
mod grow;
mod heap;
mod index;
mod names;
mod node;
mod object;
mod options;
mod output;
mod plan;
mod record;
mod scales;
mod sink;
mod space;
mod tree;
mod types;

pub use append::{AppendOptions, Hdf5Append};
pub use attributes::set_by_people;
pub use options::{Compatibility, DatasetLayout, Hdf5Options};
pub use sink::Hdf5Sink;
pub(crate) use space::FileSpace;
